// What a user sees of a run: one line that is redrawn on a terminal, plain lines elsewhere.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/steady_time.h"
#include "coordinator/run/observer.h"
#include "coordinator/run/pace.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// "12.3 MB", decimal units, three digits or more.
std::string FormatBytes(double bytes);
// "42s", "3m05s", "2h07m"
std::string FormatSeconds(double seconds);

struct ProgressState {
  RunPlan plan;
  StepRecord step;  // the last
  double samples_per_second = 0, wire_bytes_per_second = 0, eta_seconds = 0;
};

// "epoch 2/10 [=====>    ] 23/500  loss 1.2346  1190 samples/s  12.3 MB/s  42s left", at most
// `columns` characters: the bar takes what the rest leaves.
std::string ProgressLine(const ProgressState& state, int columns);

// "test accuracy 61.2 % compressed, 60.1 % uncompressed, 61.0 % recalibrated", of what there is.
std::string TestText(const TestRecord& test);

// "epoch 2/10: train loss 1.2346, accuracy 56.8 %; test accuracy 61.2 % compressed, 60.1 %
// uncompressed, 61.0 % recalibrated; sent 12.3 MB, 10.1 x smaller; 1190 samples/s". `wire` and
// `raw` are the bytes of this epoch.
std::string EpochLine(const EpochRecord& epoch, uint32_t epochs, double raw_bytes,
                      double wire_bytes);

// Where a run is to be found.
struct RunPlace {
  std::string run;      // its id
  std::string dir;      // its folder
  std::string metrics;  // the coordinator's own, host:port
};
// "run digits-1a2b in runs/digits: 4 stages on cpu; metrics at http://127.0.0.1:4711/metrics"
std::string Banner(const RunPlace& place, const RunPlan& plan);

// A line per boundary and direction: raw and wire MB, ratio, bits per element, error; and below
// what coded them, with the level at the end where it has changed. At most 80 characters a line.
std::string BoundaryTable(const std::vector<BoundaryRecord>& boundaries);

struct ProgressOptions {
  FILE* out = stdout;
  std::function<int()> columns;  // of the terminal now; 0: no terminal, plain lines
  bool quiet = false;
  std::function<SteadyTime()> now;
};

class Progress final : public RunObserver {
 public:
  explicit Progress(ProgressOptions options);

  absl::Status OnStart(const RunPlan& plan) override;
  absl::Status OnStep(const StepRecord& step) override;
  absl::Status OnTotals(const RunTotals& totals) override;
  absl::Status OnEvaluation(uint32_t epoch, Inference inference) override;
  absl::Status OnEpoch(const EpochRecord& epoch) override;
  absl::Status OnEvent(const RunEvent& event) override;
  absl::Status OnWarning(const std::string& line) override;

  // A message of its own line or lines, whatever is being drawn; peers may have a part in it: see
  // PrintableLine. Also when quiet.
  void Say(const std::string& line);

  // Ends the line that is being drawn, before others write to the terminal.
  void Break();

 private:
  void Line(const std::string& line);
  void Redraw(const std::string& line);
  std::string BlankAfter(const std::string& line) const;

  ProgressOptions options_;
  ProgressState state_;
  Pace pace_;
  double wire_bytes_ = 0;  // of the run
  SteadyTime shown_;       // last line of progress
  SteadyTime rated_;       // when the link rate was last taken
  double wire_when_rated_ = 0;
  size_t drawn_ = 0;  // characters of the line being redrawn
};

}  // namespace thinwire
