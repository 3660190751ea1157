#include "coordinator/tune/text.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/tune/cuts.h"
#include "coordinator/tune/library.h"

namespace thinwire {
namespace {

int DigitsOf(const TuneReport& report) { return report.measure() == "loss" ? 3 : 2; }

std::string Number(bool is_there, double value, int digits) {
  return is_there ? absl::StrFormat("%.*f", digits, value) : "-";
}

std::string LossText(const TuneReport& report, const TuneCandidate& one) {
  if (!one.has_loss()) return "";
  const int digits = DigitsOf(report);
  std::string text = absl::StrFormat("%+.*f", digits, one.loss().mean());
  if (one.loss().has_low()) {
    absl::StrAppend(&text, absl::StrFormat(" [%+.*f, %+.*f]", digits, one.loss().low(), digits,
                                           one.loss().high()));
  }
  return text;
}

std::string Duration(double seconds) {
  if (seconds < 120) return absl::StrFormat("%.0f s", seconds);
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

// Returns the choice, then the candidates that stood to the end, then those that fell, the last to
// fall first.
std::vector<const TuneCandidate*> InOrder(const TuneReport& report) {
  std::vector<const TuneCandidate*> rows;
  for (const TuneCandidate& one : report.candidates()) {
    if (one.name() == kNone || one.rung() > 0) rows.push_back(&one);
  }
  const auto key = [&](const TuneCandidate& one) {
    const bool fell = !one.fell().empty();
    return std::make_tuple(
        one.name() != report.choice(), fell, fell ? -static_cast<int>(one.rung()) : 0,
        one.has_seconds_to_target() ? one.seconds_to_target() : one.step_seconds());
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto* a, const auto* b) { return key(*a) < key(*b); });
  return rows;
}

std::string Row(const TuneReport& report, const TuneCandidate& one) {
  const int digits = DigitsOf(report);
  return absl::StrFormat(
      "%c%-20s %9.1f %9.4f %5d %9s %9s  %-24s %6s %9s %6s\n",
      one.name() == report.choice() ? '>' : ' ', one.name(), 1e3 * one.step_seconds(),
      one.wire_bytes() / 1e6, one.rung(), Number(one.has_compressed(), one.compressed(), digits),
      Number(one.has_uncompressed(), one.uncompressed(), digits), LossText(report, one),
      one.name() == kNone ? "1.00" : Number(one.has_steps_ratio(), one.steps_ratio(), 2),
      one.has_seconds_to_target() ? Duration(one.seconds_to_target()) : "-",
      Number(one.has_ratio_to_none(), one.ratio_to_none(), 3));
}

std::string Cost(const TuneReport& report) {
  const double share = 100 * static_cast<double>(report.spent_steps()) /
                       static_cast<double>(std::max<uint64_t>(1, report.exhaustive_steps()));
  return absl::StrFormat(
      "Spent: %d steps, %.1f %% of the %d of every candidate in full; %s of training.\n",
      report.spent_steps(), share, report.exhaustive_steps(), Duration(report.spent_seconds()));
}

}  // namespace

std::string TuneText(const TuneReport& report) {
  const bool is_loss = report.measure() == "loss";
  std::string text =
      absl::StrFormat("%-21s %9s %9s %5s %9s %9s  %-24s %6s %9s %6s\n", " candidate", "step ms",
                      "wire MB", "rung", is_loss ? "loss on" : "acc. on", "off",
                      is_loss ? "nats lost" : "points lost", "steps", "to target", "ratio");
  for (const TuneCandidate* one : InOrder(report)) text += Row(report, *one);
  absl::StrAppend(
      &text, "On, off: ", is_loss ? "validation loss" : "test accuracy",
      " with and without the codecs at the end of the candidate's last rung; lost: "
      "against none, paired by seed, with the 95 % interval. Steps: for one of none.\n");
  if (report.has_target()) {
    absl::StrAppend(&text, absl::StrFormat("Target: %.*f%s", DigitsOf(report), report.target(),
                                           is_loss ? " nats" : " %"));
    absl::StrAppend(&text, absl::StrFormat("; none is predicted to end at %.*f.\n",
                                           DigitsOf(report), report.predicted()));
  }
  const TuneCandidate& choice = CandidateNamed(report.candidates(), report.choice());
  absl::StrAppend(&text, "\nChoice: ", choice.name(),
                  choice.name() == kNone ? "" : absl::StrCat(", ", choice.codecs()), "\n  ",
                  report.why(), "\n", Cost(report));
  for (const TuneCandidate& one : report.candidates()) {
    if (!one.fell().empty()) absl::StrAppend(&text, "fell: ", one.name(), ": ", one.fell(), "\n");
  }
  for (const std::string& line : report.left_out())
    absl::StrAppend(&text, "left out: ", line, "\n");
  for (const std::string& line : report.warnings()) absl::StrAppend(&text, "warning: ", line, "\n");
  return text;
}

std::string BudgetText(const RungBudget& budget, uint64_t probe_steps, double step_seconds) {
  std::string text;
  uint64_t steps = probe_steps;
  for (size_t i = 0; i < budget.rungs.size(); ++i) {
    const Rung& rung = budget.rungs[i];
    steps += (rung.candidates + 1) * static_cast<uint64_t>(rung.seeds) * rung.steps;
    absl::StrAppend(
        &text,
        absl::StrFormat("rung %d: %d candidates and none, %d seed%s, %d steps each\n", i + 1,
                        rung.candidates, rung.seeds, rung.seeds == 1 ? "" : "s", rung.steps));
  }
  return absl::StrFormat(
      "%sbudget: %d steps of at most %d, which are %.0f %% of every candidate in full with every "
      "seed; "
      "about %s of computing here\n",
      text, steps, budget.budget_steps, 100 * kBudgetShare,
      Duration(static_cast<double>(steps) * step_seconds));
}

}  // namespace thinwire
