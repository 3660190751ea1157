// Progress of a run for its user: one line that is redrawn on a terminal, plain lines elsewhere.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "coordinator/run/observer.h"
#include "coordinator/run/pace.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Returns "12.3 MB": decimal units, at least three digits.
std::string FormatBytes(double bytes);
// Returns "42s", "3m05s" or "2h07m".
std::string FormatSeconds(double seconds);

// Data of a progress line.
struct ProgressState {
  RunPlan plan;
  StepRecord step;  // the last
  double samples_per_second = 0, wire_bytes_per_second = 0, eta_seconds = 0;
};

// Returns "epoch 2/10 [=====>    ] 23/500  loss 1.2346  1190 samples/s  12.3 MB/s  42s left", at
// most `columns` characters. The bar takes the space that is left.
std::string ProgressLine(const ProgressState& state, int columns);

// Returns "test accuracy 61.2 % compressed, 60.1 % uncompressed, 61.0 % recalibrated", with those
// that exist; "test perplexity 6.81 compressed" of a language model, "test Spearman 0.853
// compressed" of scores.
std::string TestText(const TestRecord& test);

// Returns "epoch 2/10: train loss 1.2346, accuracy 56.8 %; test accuracy 61.2 % compressed, 60.1 %
// uncompressed, 61.0 % recalibrated; sent 12.3 MB, 10.1 x smaller; 1190 samples/s". `raw_bytes` and
// `wire_bytes` are those of this epoch.
std::string EpochLine(const EpochRecord& epoch, uint32_t epochs, double raw_bytes,
                      double wire_bytes);

// Returns "epoch 2/10, step 150: test accuracy 61.2 % compressed, 60.1 % uncompressed".
std::string EvaluationLine(const EvaluationRecord& evaluation, uint32_t epochs);

// Places where a run can be found.
struct RunPlace {
  std::string run;      // its id
  std::string dir;      // its folder
  std::string metrics;  // address of the coordinator's own metrics, host:port
};
// Returns "run digits-1a2b in runs/digits: 4 stages on cpu; metrics at
// http://127.0.0.1:4711/metrics".
std::string Banner(const RunPlace& place, const RunPlan& plan);

// Returns a line per boundary and direction: raw and wire MB, ratio, bits per element, error. Below
// are their codecs, with the final level where it has changed. Lines have at most 80 characters.
std::string BoundaryTable(const std::vector<BoundaryRecord>& boundaries,
                          const ReplicasRecord& replicas = {}, const DirectionRecord& stash = {});

// Returns a line about what waited elsewhere for backward passes; empty if nothing did.
std::string SwapLine(const SwapRecord& swap);

// Output of Progress.
struct ProgressOptions {
  FILE* out = stdout;
  // Returns the terminal's current columns; 0: no terminal, plain lines.
  std::function<int()> columns;
  bool quiet = false;
  std::function<SteadyTime()> now;
};

// Shows a run's progress.
class Progress final : public RunObserver {
 public:
  explicit Progress(ProgressOptions options);

  absl::Status OnStart(const RunPlan& plan) override;
  absl::Status OnStep(const StepRecord& step) override;
  absl::Status OnTotals(const RunTotals& totals) override;
  absl::Status OnEvaluation(uint32_t epoch, Inference inference) override;
  absl::Status OnEvaluated(const EvaluationRecord& evaluation) override;
  absl::Status OnEpoch(const EpochRecord& epoch) override;
  absl::Status OnEvent(const RunEvent& event) override;
  absl::Status OnWarning(const std::string& line) override;

  // Sets what the first OnStart prints a banner of.
  void set_place(RunPlace place) { place_ = std::move(place); }

  // Prints a message on lines of its own, whatever is being drawn; also when quiet. Peers may have
  // contributed to the text, so it is made printable (see PrintableLine).
  void Say(const std::string& line);

  // Ends the line that is being drawn, before others write to the terminal.
  void Break();

 private:
  void Line(const std::string& line);
  void Redraw(const std::string& line);
  std::string BlankAfter(const std::string& line) const;

  ProgressOptions options_;
  std::optional<RunPlace> place_;  // until its banner is printed
  ProgressState state_;
  Pace pace_;
  double wire_bytes_ = 0;  // of the whole run
  SteadyTime shown_;       // time of the last line of progress
  SteadyTime rated_;       // time of the last link rate
  double wire_when_rated_ = 0;
  size_t drawn_ = 0;  // number of characters of the line being redrawn
};

}  // namespace thinwire
