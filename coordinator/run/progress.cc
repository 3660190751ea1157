#include "coordinator/run/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "coordinator/files/summary.h"
#include "coordinator/plan/table_text.h"
#include "coordinator/run/boundary_totals.h"

namespace thinwire {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(100);
constexpr absl::Duration kPlainLine = absl::Seconds(10);
constexpr absl::Duration kRateWindow = absl::Seconds(1);
constexpr int kNarrowestBar = 5, kWidestBar = 40;

std::string Bar(double share, int width) {
  const int done = std::clamp(static_cast<int>(share * width), 0, width);
  std::string bar(static_cast<size_t>(width), ' ');
  std::fill_n(bar.begin(), done, '=');
  if (done < width) bar[static_cast<size_t>(done)] = '>';
  return absl::StrCat("[", bar, "] ");
}

std::string Percent(double fraction) { return absl::StrFormat("%.1f %%", 100 * fraction); }

const char* Name(Inference inference) {
  switch (inference) {
    case Inference::kCompressed:
      return "with the codecs";
    case Inference::kUncompressed:
      return "without codecs";
    case Inference::kUncompressedRecalibrated:
      return "without codecs, recalibrated";
  }
  return "";
}

// Returns ", accuracy 56.8 %", or nothing where there is none.
std::string AccuracyText(const Measured& measured) {
  if (!measured.has_accuracy()) return "";
  return absl::StrCat(", accuracy ", Percent(measured.accuracy()));
}

// Returns the result to show: a language model's perplexity, the correlation of ranks of scores,
// otherwise the accuracy and what else the task is judged by.
std::string Told(const Measured& measured) {
  if (measured.has_scores()) return absl::StrFormat("%.3f", measured.scores().spearman());
  if (measured.has_perplexity()) return absl::StrFormat("%.2f", measured.perplexity());
  std::string told = Percent(measured.accuracy());
  const ClassMeasures& classes = measured.classes();
  if (classes.has_f1()) absl::StrAppend(&told, " (F1 ", Percent(classes.f1()), ")");
  if (classes.has_matthews()) absl::StrAppendFormat(&told, " (Matthews %.3f)", classes.matthews());
  return told;
}

constexpr char kRow[] = "%-10s %-10s %10s %10s %8s %9s %9s\n";

std::string Row(const std::string& boundary, const char* direction, const DirectionRecord& r) {
  return absl::StrFormat(
      kRow, boundary, direction, absl::StrFormat("%.2f", r.raw_bytes() / 1e6),
      absl::StrFormat("%.2f", r.wire_bytes() / 1e6), absl::StrFormat("%.1f x", CompressionRatio(r)),
      absl::StrFormat("%.2f", r.wire_bits_per_element()),
      r.has_relative_error() ? absl::StrFormat("%.4f", r.relative_error()) : "-");
}

std::string CodecOf(const DirectionRecord& r) {
  if (!r.has_level()) return r.parameters();
  return absl::StrCat(r.parameters(), ", in the end at level ", r.level());
}

}  // namespace

std::string FormatBytes(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f %s", decimals, bytes, units[unit]);
}

std::string FormatSeconds(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return absl::StrFormat("%ds", whole);
  if (whole < 3600) return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  return absl::StrFormat("%dh%02dm", whole / 3600, whole / 60 % 60);
}

std::string ProgressLine(const ProgressState& state, int columns) {
  const RunPlan& plan = state.plan;
  const uint32_t epoch = std::max(1u, state.step.epoch());
  const uint64_t before = std::min((epoch - 1) * plan.steps_per_epoch, state.step.step());
  const uint64_t step = state.step.step() - before;
  const uint64_t steps = std::max<uint64_t>(1, plan.EndOf(epoch) - before);
  const std::string head = absl::StrFormat("epoch %d/%d ", epoch, plan.epochs);
  const std::string tail =
      absl::StrFormat("%d/%d  loss %.4f  %.0f samples/s  %s/s  %s left", step, steps,
                      state.step.loss(), state.samples_per_second,
                      FormatBytes(state.wire_bytes_per_second), FormatSeconds(state.eta_seconds));
  const int room = columns - static_cast<int>(head.size() + tail.size()) - 3;
  const std::string bar =
      room < kNarrowestBar ? "" : Bar(1.0 * step / steps, std::min(room, kWidestBar));
  return (head + bar + tail).substr(0, static_cast<size_t>(columns));
}

std::string TestText(const TestRecord& test) {
  const Measured& any = test.has_compressed() ? test.compressed() : test.uncompressed();
  std::string text =
      absl::StrCat(test.held_out() ? "held-out " : "test ", any.has_perplexity() ? "perplexity "
                                                            : any.has_scores()   ? "Spearman "
                                                                                 : "accuracy ");
  if (test.has_compressed()) absl::StrAppend(&text, Told(test.compressed()), " compressed");
  if (test.has_uncompressed()) {
    absl::StrAppend(&text, test.has_compressed() ? ", " : "", Told(test.uncompressed()),
                    " uncompressed");
  }
  if (test.has_uncompressed_recalibrated()) {
    absl::StrAppend(&text, ", ", Told(test.uncompressed_recalibrated()), " recalibrated");
  }
  return text;
}

std::string EpochLine(const EpochRecord& epoch, uint32_t epochs, double raw_bytes,
                      double wire_bytes) {
  std::string line = absl::StrFormat("epoch %d/%d: train loss %.4f%s", epoch.epoch(), epochs,
                                     epoch.train().loss(), AccuracyText(epoch.train()));
  if (epoch.has_test()) absl::StrAppend(&line, "; ", TestText(epoch.test()));
  if (wire_bytes > 0) {
    absl::StrAppendFormat(&line, "; sent %s, %.1f x smaller", FormatBytes(wire_bytes),
                          raw_bytes / wire_bytes);
  }
  absl::StrAppendFormat(&line, "; %.0f samples/s", epoch.samples_per_second());
  return line;
}

std::string EvaluationLine(const EvaluationRecord& evaluation, uint32_t epochs) {
  return absl::StrFormat("epoch %d/%d, step %d: %s", evaluation.epoch(), epochs, evaluation.step(),
                         TestText(evaluation.test()));
}

std::string Banner(const RunPlace& place, const RunPlan& plan) {
  const bool are_equal = plan.stage_carriers.empty();
  const size_t stages = are_equal ? plan.stages.size() / plan.carriers : plan.stage_carriers.size();
  const std::string carriers =
      plan.carriers > 1 && are_equal ? absl::StrCat(plan.carriers, " carriers of ") : std::string();
  const std::string machines =
      are_equal ? std::string()
                : absl::StrCat(" of ", absl::StrJoin(plan.stage_carriers, ", "), " machines");
  return absl::StrFormat("run %s in %s: %s%d %s%s on %s; metrics at http://%s/metrics", place.run,
                         place.dir, carriers, stages, stages == 1 ? "stage" : "stages", machines,
                         plan.devices, place.metrics);
}

std::string BoundaryTable(const std::vector<BoundaryRecord>& boundaries,
                          const ReplicasRecord& replicas, const DirectionRecord& stash) {
  const bool has_stash = stash.messages() > 0;
  if (boundaries.empty() && !replicas.has_contributions() && !has_stash) return "";
  std::string table = absl::StrFormat(kRow, "boundary", "direction", "raw MB", "wire MB", "ratio",
                                      "bits/elem", "rel.error");
  std::vector<Described> codecs;
  for (const BoundaryRecord& boundary : boundaries) {
    codecs.push_back({boundary.name(), "activation", CodecOf(boundary.activations())});
    codecs.push_back({boundary.name(), "gradient", CodecOf(boundary.gradients())});
    absl::StrAppend(&table, Row(boundary.name(), "activation", boundary.activations()),
                    Row(boundary.name(), "gradient", boundary.gradients()));
  }
  if (replicas.has_contributions()) {
    codecs.push_back({"replicas", "gradient", CodecOf(replicas.contributions())});
    absl::StrAppend(&table, Row("replicas", "gradient", replicas.contributions()));
  }
  if (replicas.has_average()) {
    codecs.push_back({"replicas", "average", CodecOf(replicas.average())});
    absl::StrAppend(&table, Row("replicas", "average", replicas.average()));
  }
  if (has_stash) {
    codecs.push_back({"stash", "kept", CodecOf(stash)});
    absl::StrAppend(&table, Row("stash", "kept", stash));
  }
  return table + DescriptionLines(codecs);
}

std::string SwapLine(const SwapRecord& swap) {
  if (swap.bytes_out() == 0) return "";
  return absl::StrFormat("swap:     %s out, %s in, at most %s of a stage at once, %.1f s waited\n",
                         FormatBytes(static_cast<double>(swap.bytes_out())),
                         FormatBytes(static_cast<double>(swap.bytes_in())),
                         FormatBytes(static_cast<double>(swap.most_bytes())), swap.wait_seconds());
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {}

void Progress::Line(const std::string& line) {
  if (!options_.quiet) Say(line);
}

void Progress::Say(const std::string& line) {
  std::vector<std::string> lines;
  for (absl::string_view one : absl::StrSplit(line, '\n')) {
    lines.push_back(PrintableLine(std::string_view(one.data(), one.size())));
  }
  std::string text = absl::StrJoin(lines, "\n");
  if (drawn_ > 0) {
    text = absl::StrCat("\r", text, BlankAfter(text));
    drawn_ = 0;
  }
  std::fprintf(options_.out, "%s\n", text.c_str());
  std::fflush(options_.out);
}

void Progress::Break() {
  if (drawn_ > 0) std::fprintf(options_.out, "\n");
  std::fflush(options_.out);
  drawn_ = 0;
}

// Returns blanks for what was drawn beyond `line`. They stop at the terminal's edge, which may have
// moved: beyond it they would scroll.
std::string Progress::BlankAfter(const std::string& line) const {
  const size_t last = std::max(1, options_.columns()) - 1u;
  const size_t drawn = std::min(drawn_, last);
  return std::string(drawn - std::min(drawn, line.size()), ' ');
}

void Progress::Redraw(const std::string& line) {
  std::fprintf(options_.out, "\r%s%s", line.c_str(), BlankAfter(line).c_str());
  std::fflush(options_.out);
  drawn_ = line.size();
}

absl::Status Progress::OnStart(const RunPlan& plan) {
  if (place_) Line(Banner(*place_, plan));
  place_.reset();
  state_.plan = plan;
  pace_.Start(plan);
  shown_ = rated_ = options_.now();
  return absl::OkStatus();
}

absl::Status Progress::OnStep(const StepRecord& step) {
  state_.step = step;
  pace_.Add(step);
  state_.samples_per_second = pace_.SamplesPerSecond();
  state_.eta_seconds = pace_.EtaSeconds();
  const int columns = options_.columns();
  const bool terminal = columns > 0;
  const SteadyTime now = options_.now();
  if (options_.quiet || now - shown_ < (terminal ? kRedraw : kPlainLine)) return absl::OkStatus();
  shown_ = now;
  if (terminal) {
    Redraw(ProgressLine(state_, columns - 1));
  } else {
    Line(ProgressLine(state_, /*columns=*/100));
  }
  return absl::OkStatus();
}

absl::Status Progress::OnTotals(const RunTotals& totals) {
  const ReplicasRecord& replicas = totals.replicas;
  wire_bytes_ =
      static_cast<double>(replicas.contributions().wire_bytes() + replicas.average().wire_bytes());
  for (const BoundaryRecord& boundary : totals.boundaries) {
    for (const DirectionRecord* r : {&boundary.activations(), &boundary.gradients()}) {
      wire_bytes_ += static_cast<double>(r->wire_bytes());
    }
  }
  const absl::Duration window = options_.now() - rated_;
  if (window < kRateWindow) return absl::OkStatus();
  state_.wire_bytes_per_second = (wire_bytes_ - wire_when_rated_) / absl::ToDoubleSeconds(window);
  rated_ = options_.now();
  wire_when_rated_ = wire_bytes_;
  return absl::OkStatus();
}

absl::Status Progress::OnEvent(const RunEvent& event) {
  if (event.has_standstill()) {
    Line(absl::StrCat("stopped after step ", event.step(), ": ", event.standstill()));
    return absl::OkStatus();
  }
  std::string where = absl::StrCat("going on from step ", event.step());
  if (HasGoneOn(event)) {
    absl::StrAppend(&where, ", with what the others have");
  } else if (event.step() == 0) {
    where = "beginning anew, there is no checkpoint";
  }
  if (event.has_carriers()) {
    absl::StrAppend(&where, event.carriers() == 1
                                ? ", as one pipeline"
                                : absl::StrCat(", as ", event.carriers(), " pipelines"));
  }
  if (event.deal_size() > 1) {
    absl::StrAppend(&where, " of ", absl::StrJoin(event.deal(), ", "), " replicas");
  }
  std::string why;
  if (event.has_stage()) {
    why = absl::StrCat(event.type() == kLeft ? "left by stage " : "lost stage ", event.stage(),
                       ": ", event.error(), "\n");
  } else if (event.has_error()) {
    why = event.error() + "\n";
  }
  Say(why + where);
  return absl::OkStatus();
}

absl::Status Progress::OnWarning(const std::string& line) {
  Say("warning: " + line);
  return absl::OkStatus();
}

absl::Status Progress::OnEvaluation(uint32_t epoch, Inference inference) {
  const int columns = options_.columns();
  if (columns > 0 && !options_.quiet) {
    const std::string line =
        absl::StrFormat("epoch %d/%d evaluating %s", epoch, state_.plan.epochs, Name(inference));
    Redraw(line.substr(0, static_cast<size_t>(columns - 1)));
  }
  return absl::OkStatus();
}

absl::Status Progress::OnEvaluated(const EvaluationRecord& evaluation) {
  Line(EvaluationLine(evaluation, state_.plan.epochs));
  shown_ = rated_ = options_.now();  // as the link rests in an evaluation
  wire_when_rated_ = wire_bytes_;
  return absl::OkStatus();
}

absl::Status Progress::OnEpoch(const EpochRecord& epoch) {
  pace_.Add(epoch);
  double raw_bytes = 0, wire_bytes = 0;
  for (const EpochBoundary& boundary : epoch.boundaries()) {
    for (const EpochDirection* d : {&boundary.activations(), &boundary.gradients()}) {
      raw_bytes += static_cast<double>(d->raw_bytes());
      wire_bytes += static_cast<double>(d->wire_bytes());
    }
  }
  for (const EpochDirection* d : {&epoch.replicas().contributions(), &epoch.replicas().average()}) {
    raw_bytes += static_cast<double>(d->raw_bytes());
    wire_bytes += static_cast<double>(d->wire_bytes());
  }
  Line(EpochLine(epoch, state_.plan.epochs, raw_bytes, wire_bytes));
  if (epoch.seconds() > 0) {  // used until the next epoch has a rate of its own
    state_.wire_bytes_per_second = wire_bytes / epoch.seconds();
  }
  shown_ = rated_ = options_.now();
  wire_when_rated_ = wire_bytes_;
  return absl::OkStatus();
}

}  // namespace thinwire
