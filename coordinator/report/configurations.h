// Runs read from their folders, in groups that differ in their seed alone; what they reached, and
// after which time and traffic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

inline constexpr size_t kLossPoints = 200;  // most points of one run's loss curve

// Mean loss of a stretch of steps; `step` is the last of them.
struct LossPoint {
  double step = 0;
  double loss = 0;
};

// One run, read from its folder.
struct ReportedRun {
  std::string dir;
  std::string experiment;  // the resolved experiment, as YAML
  // For a run without a summary it has name, seed and complete epochs alone, and the status
  // kUnfinished.
  Summary summary;
  std::vector<LossPoint> losses;  // of training; steps whose loss is not a number are left out
  uint64_t steps_per_epoch = 0;   // steps of epoch 1 so far
};

// Status of a run that still goes on, or was killed.
inline constexpr char kUnfinished[] = "unfinished";

// Reads the runs in and below `paths`, in the order of `paths` and then by path; a run that is met
// twice is read once. NotFound names a path that does not exist or that has no run in or below it.
// InvalidArgument names a file that no run could have written, and its line. Other files beside
// runs are ignored.
absl::StatusOr<std::vector<ReportedRun>> ReadRuns(const std::vector<std::string>& paths);

// Runs of one experiment with several seeds.
struct Configuration {
  std::string name;
  // In the order of seeds; owned by the caller of Configurations.
  std::vector<const ReportedRun*> runs;
  // The runs that count: the completed ones, or all if none is complete.
  std::vector<const ReportedRun*> judged;
};

// Groups runs whose experiments are equal but for the name, the seed and the place of the data.
// Groups stand in the order of their first runs. A configuration is named after its experiment; if
// two have the same name, after the folder of its first run. "-seedN" is dropped from the name.
std::vector<Configuration> Configurations(const std::vector<ReportedRun>& runs);

// Accuracy: a fraction, more is better; loss: nats, less is better.
enum class Measure { kAccuracy, kLoss };

// Returns the measure of the runs: loss for language models and scores, else accuracy.
// InvalidArgument names two runs of different kinds, which no table can hold together.
absl::StatusOr<Measure> MeasureOf(const std::vector<ReportedRun>& runs);

// Return the result of an evaluation with `inference`, or of an epoch's; nothing if there was none.
std::optional<double> Evaluated(const TestRecord& test, Inference inference, Measure measure);
std::optional<double> Evaluated(const EpochRecord& epoch, Inference inference, Measure measure);
// Return the result of the last epoch that was evaluated so, and that of the best one.
std::optional<double> Last(const ReportedRun& run, Inference inference, Measure measure);
std::optional<double> Best(const ReportedRun& run, Inference inference, Measure measure);

// Bytes that a run sent.
struct Traffic {
  double raw_bytes = 0, wire_bytes = 0;
};
// Returns the sum over all training epochs up to the `epochs`-th, both directions of all cuts.
Traffic Sent(const ReportedRun& run, size_t epochs);
// Does the same for all epochs.
Traffic Sent(const ReportedRun& run);

double Median(std::vector<double> values);  // `values` must not be empty

// Value that an evaluation has to reach.
struct ReportTarget {
  double value = 0;
  Inference inference = Inference::kCompressed;
  Measure measure = Measure::kAccuracy;
};

// Cost of training until the target was reached.
struct Reached {
  uint32_t epoch = 0;
  double seconds = 0;     // of training up to that epoch's end, without evaluation and start-up
  double wire_bytes = 0;  // sent in training until then
};

// Returns the first evaluated epoch that reaches the target and whose next evaluated epoch reaches
// it too. The last evaluated epoch needs no confirmation. Returns nothing if there is none.
std::optional<Reached> FirstReached(const ReportedRun& run, const ReportTarget& target);

}  // namespace thinwire
