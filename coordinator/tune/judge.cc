#include "coordinator/tune/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/results/paired.h"
#include "coordinator/tune/library.h"

namespace thinwire {
namespace {

constexpr size_t kParts = 5;  // of a curve; its end is the last part

// Returns the means of each `width` neighbouring steps; entry i is that of steps i to i + width -
// 1.
std::vector<double> Smoothed(const std::vector<double>& values, size_t width) {
  std::vector<double> means;
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    if (i >= width) sum -= values[i - width];
    if (i + 1 >= width) means.push_back(sum / static_cast<double>(width));
  }
  return means;
}

std::vector<const TrainedRun*> RunsOf(const TrainedRung& rung, const std::string& name) {
  std::vector<const TrainedRun*> runs;
  for (const TrainedRun& run : rung.runs) {
    if (run.name == name) runs.push_back(&run);
  }
  return runs;
}

BySeed ReachedValues(const std::vector<const TrainedRun*>& runs) {
  BySeed values;
  for (const TrainedRun* run : runs) values.emplace_back(run->seed, run->compressed);
  return values;
}

double MeanValue(const std::vector<const TrainedRun*>& runs) {
  double sum = 0;
  for (const TrainedRun* run : runs) sum += run->compressed;
  return sum / static_cast<double>(runs.size());
}

void FillValues(const std::vector<const TrainedRun*>& runs, uint32_t number, TuneCandidate* one) {
  one->set_rung(number);
  one->set_compressed(MeanValue(runs));
  one->clear_uncompressed();
  std::vector<double> uncompressed;
  for (const TrainedRun* run : runs) {
    if (run->uncompressed) uncompressed.push_back(*run->uncompressed);
  }
  if (!uncompressed.empty()) one->set_uncompressed(MeanOf(uncompressed));
}

void FillAgainst(const std::vector<const TrainedRun*>& none,
                 const std::vector<const TrainedRun*>& runs, bool is_loss, TuneCandidate* one) {
  // A loss is positive if accuracy is missing, or if there are more nats.
  const auto estimate =
      PairedEstimate(PairedDifferences(ReachedValues(none), ReachedValues(runs), is_loss ? 1 : -1));
  if (estimate.ok()) {
    TuneLoss* const loss = one->mutable_loss();
    loss->Clear();
    loss->set_mean(estimate->mean);
    loss->set_seeds(static_cast<uint32_t>(estimate->n));
    if (estimate->n > 1) {
      loss->set_low(estimate->low);
      loss->set_high(estimate->high);
    }
  }
  std::vector<double> ratios;
  for (const TrainedRun* run : runs) {
    for (const TrainedRun* plain : none) {
      if (plain->seed == run->seed) ratios.push_back(StepsRatio(plain->losses, run->losses));
    }
  }
  if (!ratios.empty()) one->set_steps_ratio(MeanOf(ratios));
}

std::string LossText(const TuneCandidate& one, bool is_loss) {
  const TuneLoss& loss = one.loss();
  const int digits = is_loss ? 4 : 2;
  std::string text = absl::StrFormat("%.*f", digits, loss.mean());
  if (loss.has_low()) {
    absl::StrAppend(&text,
                    absl::StrFormat(" [%.*f, %.*f]", digits, loss.low(), digits, loss.high()));
  }
  return absl::StrCat(text, is_loss ? " nats" : " points");
}

bool Beats(const TuneCandidate& a, const TuneCandidate& b) {
  return a.step_seconds() < b.step_seconds() && a.loss().mean() <= b.loss().mean() &&
         a.steps_ratio() <= b.steps_ratio();
}

double Pace(const TuneCandidate& one) { return one.steps_ratio() * one.step_seconds(); }

}  // namespace

double StepsRatio(const std::vector<double>& none, const std::vector<double>& losses) {
  const size_t steps = std::min(none.size(), losses.size());
  const size_t width = std::max<size_t>(1, steps / kParts);
  const std::vector<double> plain = Smoothed(none, width);
  const double end = Smoothed(losses, width).back();
  const auto there =
      std::find_if(plain.begin(), plain.end(), [&](double mean) { return mean <= end; });
  if (there == plain.end()) return 1;
  const auto at = static_cast<double>(width + static_cast<size_t>(there - plain.begin()));
  return std::max(1.0, static_cast<double>(steps) / at);
}

void JudgeRung(const TrainedRung& rung, uint32_t number, double max_loss, size_t places,
               const std::map<std::string, std::string>& failures, TuneCandidates* all) {
  const std::string when = absl::StrCat("rung ", number, ": ");
  const std::vector<const TrainedRun*> none = RunsOf(rung, kNone);
  for (TuneCandidate& one : *all) {
    if (one.name() == kNone) FillValues(none, number, &one);
  }
  for (TuneCandidate* const one : StillStanding(all)) {
    const std::vector<const TrainedRun*> runs = RunsOf(rung, one->name());
    const auto why = failures.find(one->name());
    if (runs.empty() || why != failures.end()) {
      one->set_fell(
          absl::StrCat(when, "its run failed: ", why == failures.end() ? "" : why->second));
      continue;
    }
    FillValues(runs, number, one);
    FillAgainst(none, runs, rung.is_loss, one);
    if (!std::isfinite(one->compressed())) {
      one->set_fell(when + "it ended with a loss that is no number");
    } else if (one->loss().has_low() && one->loss().low() > max_loss) {
      one->set_fell(absl::StrCat(when, "loses ", LossText(*one, rung.is_loss)));
    }
  }
  const std::vector<TuneCandidate*> left = StillStanding(all);
  for (TuneCandidate* const one : left) {
    const auto better = std::find_if(left.begin(), left.end(), [&](const TuneCandidate* other) {
      return other->fell().empty() && one->loss().seeds() > 1 && Beats(*other, *one);
    });
    if (better != left.end()) {
      one->set_fell(absl::StrCat(when, "slower than ", (*better)->name(), ", which loses no more"));
    }
  }
  // Short runs lose more than long ones, and few seeds leave the loss uncertain, so it may be twice
  // as much.
  const std::vector<TuneCandidate*> ranked = Ranked(2 * max_loss, all);
  for (size_t i = places; i < ranked.size(); ++i) {
    ranked[i]->set_fell(
        absl::StrFormat("%snot among the best %d: %.1f ms for a step of none, loses %s", when,
                        places, 1e3 * Pace(*ranked[i]), LossText(*ranked[i], rung.is_loss)));
  }
}

std::vector<TuneCandidate*> Ranked(double allowed, TuneCandidates* all) {
  std::vector<TuneCandidate*> ranked = StillStanding(all);
  const auto key = [&](const TuneCandidate& one) {
    const bool is_within = one.loss().mean() <= allowed;
    return std::make_pair(!is_within, is_within ? Pace(one) : one.loss().mean());
  };
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const auto* a, const auto* b) { return key(*a) < key(*b); });
  return ranked;
}

double Trend::ErrorAt(double steps_then) const {
  return error * std::pow(steps_then / steps, slope);
}

double Trend::ValueAt(double steps_then) const {
  return is_loss ? ErrorAt(steps_then) : 100 - ErrorAt(steps_then);
}

std::optional<double> Trend::StepsTo(double target) const {
  const double wanted = is_loss ? target : 100 - target;
  if (slope >= 0) return error <= wanted ? std::optional<double>(steps) : std::nullopt;
  if (wanted <= 0) return std::nullopt;
  return steps * std::pow(wanted / error, 1 / slope);
}

Trend TrendOf(const TrainedRung& first, const TrainedRung& last) {
  constexpr double kLeastError = 1e-3;  // an error of 0 has no logarithm
  const auto error = [&](double value) {
    return std::max(last.is_loss ? value : 100 - value, kLeastError);
  };
  const std::vector<const TrainedRun*> before = RunsOf(first, kNone), after = RunsOf(last, kNone);
  Trend trend;
  trend.is_loss = last.is_loss;
  trend.steps = static_cast<double>(last.steps);
  trend.error = error(MeanValue(after));
  trend.slope = std::log(error(after.front()->compressed) / error(before.front()->compressed)) /
                std::log(trend.steps / static_cast<double>(first.steps));
  return trend;
}

namespace {

void SetTimes(double steps, TuneReport* report) {
  const double plain = steps * CandidateNamed(report->candidates(), kNone).step_seconds();
  for (TuneCandidate& one : *report->mutable_candidates()) {
    const bool is_none = one.name() == kNone;
    if (!is_none && !one.has_steps_ratio()) continue;
    const double seconds = is_none ? plain : steps * Pace(one);
    one.set_seconds_to_target(seconds);
    one.set_ratio_to_none(seconds / plain);
  }
}

void Choose(const std::string& name, const std::string& why, TuneReport* report) {
  report->set_choice(name);
  report->set_why(why);
}

}  // namespace

void Conclude(const Trend* trend, TuneReport* report) {
  if (trend == nullptr) {
    return Choose(kNone,
                  report->rungs().empty() ? "no candidate makes a step faster on this link"
                                          : "every candidate fell",
                  report);
  }
  const TuneTask& task = report->task();
  const auto all_steps = static_cast<double>(report->experiment_steps());
  const double worse = trend->is_loss ? task.max_loss() : -task.max_loss();
  report->set_predicted(trend->ValueAt(all_steps));
  report->set_target(task.has_target() ? task.target() : report->predicted() + worse);
  const std::optional<double> steps = trend->StepsTo(report->target());
  if (!steps || (task.has_target() && *steps > all_steps)) {
    return Choose(
        kNone,
        absl::StrFormat("nobody reaches the target of %g in the experiment's %d steps: "
                        "none would reach %.4g",
                        report->target(), report->experiment_steps(), report->predicted()),
        report);
  }
  SetTimes(*steps, report);
  // A candidate that needs r steps for one of none's is where `none` was after an r-th of them. Its
  // loss is thus a fixed share of none's error and shrinks with it.
  const double allowed = task.max_loss() * trend->error / trend->ErrorAt(all_steps);
  const std::vector<TuneCandidate*> ranked = Ranked(allowed, report->mutable_candidates());
  if (ranked.empty()) return Choose(kNone, "every candidate loses too much", report);
  const TuneCandidate& best = *ranked.front();
  if (best.ratio_to_none() >= 1) {
    return Choose(kNone, "what codecs save of a step they take in more steps", report);
  }
  const bool is_proven = best.loss().has_high() && best.loss().high() <= allowed;
  const bool is_within = best.loss().mean() <= allowed;
  Choose(best.name(),
         absl::StrCat(
             is_within
                 ? "the fastest to the target of those that will end within --max_loss"
                 : "no candidate will end within --max_loss in the mean, and this one loses least",
             is_proven ? ", with its whole interval" : ", though its interval is wider"),
         report);
}

}  // namespace thinwire
