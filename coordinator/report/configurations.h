// Groups of runs that differ in their seed alone, and what they reached.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/report/runs.h"
#include "coordinator/run/observer.h"

namespace thinwire {

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

// Returns the measure of the runs: loss for language models, else accuracy. InvalidArgument names
// two runs of different kinds, which no table can hold together.
absl::StatusOr<Measure> MeasureOf(const std::vector<ReportedRun>& runs);

// Returns the result of an epoch's evaluation with `inference`; nothing if there was none.
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

}  // namespace thinwire
