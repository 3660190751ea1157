// Comparison of a sweep's runs: mean and deviation over seeds for each row, and the paired
// difference to a baseline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Result of one completed run: its last evaluation and the bytes it sent.
struct Outcome {
  std::string row;
  uint64_t seed = 0;
  // True for the loss of a language model or of scores; false: an accuracy, as a fraction.
  bool is_loss = false;
  // With and without codecs in evaluation; not set where not evaluated.
  std::optional<double> compressed, uncompressed;
  double wire_bytes = 0;
};

// Returns the outcome; InvalidArgument unless the run completed.
absl::StatusOr<Outcome> OutcomeOf(const std::string& row, const Summary& summary);

// Returns a table with name, runs, mean ± deviation with and without compression in evaluation,
// mean bytes sent, and the difference to the row `baseline`. The difference is over the seeds that
// both have, with its 95 % interval. Accuracies are in per cent and points, losses in nats. Rows
// are in the order of their first outcome.
std::string OutcomeTable(const std::vector<Outcome>& outcomes, const std::string& baseline);

// Returns "-1.25 [-2.00, -0.50]": right minus left over the pairs, in per cent points or nats. A
// single pair has no interval; without pairs the text is "".
std::string PairedText(const std::vector<Outcome>& left, const std::vector<Outcome>& right,
                       std::optional<double> Outcome::*inference);

}  // namespace thinwire
