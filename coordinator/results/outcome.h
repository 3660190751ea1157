// What a sweep tells of its runs side by side: per row mean and deviation over seeds, and the
// paired difference to a baseline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// The end of one completed run: its last evaluation and all it sent.
struct Outcome {
  std::string row;
  uint64_t seed = 0;
  bool is_loss = false;  // of a language model; an accuracy, a fraction, otherwise
  std::optional<double> compressed, uncompressed;  // at inference; absent where not evaluated
  double wire_bytes = 0;
};

// InvalidArgument unless it is of a completed run.
absl::StatusOr<Outcome> OutcomeOf(const std::string& row, const Summary& summary);

// A row's name, runs, mean ± deviation with and without compression at inference, mean bytes sent,
// and the difference to the row `baseline` of the seeds that both have, with its 95 % interval.
// Accuracies in per cent and points, losses in nats. Rows in the order of their first outcome.
std::string OutcomeTable(const std::vector<Outcome>& outcomes, const std::string& baseline);

// "-1.25 [-2.00, -0.50]": right minus left of the pairs, where there are any, in per cent points or
// nats; without an interval of a single pair; "" without a pair.
std::string PairedText(const std::vector<Outcome>& left, const std::vector<Outcome>& right,
                       std::optional<double> Outcome::*inference);

}  // namespace thinwire
