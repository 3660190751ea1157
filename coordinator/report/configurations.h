// Runs that differ in their seed alone, and what they reached.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/report/runs.h"
#include "coordinator/run/observer.h"

namespace thinwire {

struct Configuration {
  std::string name;
  std::vector<const ReportedRun*> runs;  // by seed; owned by whoever called Configurations
  // What it is judged by: the completed runs, or all of them where none is.
  std::vector<const ReportedRun*> judged;
};

// Runs of equal experiments but for name, seed, and where data lie, in the order in which the first
// of each came. A configuration has its experiment's name, and that of its first run's folder where
// another has the same, without "-seedN".
std::vector<Configuration> Configurations(const std::vector<ReportedRun>& runs);

enum class Measure { kAccuracy, kLoss };  // fraction, more is better; nats, less is better

// What language models are judged by, loss, or else accuracy. InvalidArgument names two runs of
// both kinds, which no table can hold together.
absl::StatusOr<Measure> MeasureOf(const std::vector<ReportedRun>& runs);

// Of an epoch's evaluation, if it had one of that kind.
std::optional<double> Evaluated(const EpochRecord& epoch, Inference inference, Measure measure);
// Of the last epoch that was evaluated so; and of the best one.
std::optional<double> Last(const ReportedRun& run, Inference inference, Measure measure);
std::optional<double> Best(const ReportedRun& run, Inference inference, Measure measure);

struct Traffic {
  double raw_bytes = 0, wire_bytes = 0;
};
// Of all epochs of training up to the `epochs`-th, both directions of all cuts.
Traffic Sent(const ReportedRun& run, size_t epochs);
Traffic Sent(const ReportedRun& run);

struct MeanAndDeviation {
  double mean = 0;
  double deviation = 0;  // of a sample; 0 of a single value
};
std::optional<MeanAndDeviation> MeanAndDeviationOf(
    const std::vector<double>& values);     // none of none
double Median(std::vector<double> values);  // of at least one

}  // namespace thinwire
