// Tensor-parallel parts (models/parts.h): defaults and checks of an experiment's `tensor` and
// `compression.sums`, and their checked form. Which machine carries which parts is not the
// experiment's.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "config/replicas_spec.h"
#include "models/model.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct SumsSpec {
  int parts = 1;  // 1: nothing is divided
  // Ways of partial sums through codecs. Neither has feedback, or a codec that remembers messages.
  DirectionSpec activations, gradients;
  // Number of blocks with sums, the first of the model, whose sums are exact.
  int exact_blocks = 0;
};

// Largest number of machines of a stage: LinkOptions::number has room for no more.
inline constexpr int kMostCarriers = (1 << 15) - 1;

// Largest number of steps that a row without replicas may be behind the others.
inline constexpr int kMostStepsBehind = 10000;

// The machines of one stage: rows of them carry the experiment's replicas, and those of a row the
// parts of its layers. Carrier c is in row c / parts, at place c % parts.
struct CarrierGrid {
  int replicas = 1;  // number of rows
  int parts = 1;     // number of places in a row
  Deal deal = {};    // of the replicas to the rows

  int count() const { return replicas * parts; }
  int RowOf(int carrier) const { return carrier / parts; }
  int PlaceOf(int carrier) const { return carrier % parts; }
  // Returns those of the experiment's replicas that a row carries.
  ReplicaRange CarriedBy(int row, int of_experiment) const {
    return thinwire::CarriedBy(row, replicas, of_experiment, deal);
  }
  // Returns whether a row carries no replica, and gets the averages of each step only.
  bool Follows(int row) const { return !deal.empty() && deal[static_cast<size_t>(row)] == 0; }
  // Returns the grid without those rows, which are the last ones.
  CarrierGrid Carrying() const;
  // Returns whether two carriers exchange anything: partial sums in a row, or what replicas learned
  // at one place of two rows.
  bool AreJoined(int a, int b) const {
    return a != b && (RowOf(a) == RowOf(b) || PlaceOf(a) == PlaceOf(b));
  }
};

// Returns the carriers of one stage, laid out as `there`, that have some of the `replicas` in
// common with a carrier of another stage, in ascending order.
std::vector<int> Sharing(const CarrierGrid& here, int carrier, const CarrierGrid& there,
                         int replicas);

// Returns how as many carriers are laid out: as many rows as there are carriers, up to the number
// of replicas, and then places in each. InvalidArgument says which numbers of carriers can be.
absl::StatusOr<CarrierGrid> GridOf(const Experiment& experiment, int carriers);

// Returns the number of parts; 1 where the experiment has no section for them.
int PartsOf(const Experiment& experiment);

// Returns whether layers between divided ones work on slices of positions
// (models/sliced_positions.h).
bool HasSlicedPositions(const Experiment& experiment);

// Checks the number of parts, which the model is divided by.
absl::Status CheckParts(const Experiment& experiment);

// Checks `compression.sums`, whose directions must be resolved, and what cannot go with parts.
// Fills in from_layer and tensor.sequence.
absl::Status ResolveSums(const Model& model, Experiment* experiment);

// Returns the model with the learned bottlenecks of its sums, if the experiment has any.
absl::StatusOr<Model> WithBottlenecksOfSums(const Experiment& experiment, Model model);

// Returns the checked form. `model` is that of the experiment.
absl::StatusOr<SumsSpec> SumsFrom(const Experiment& experiment, const Model& model);

}  // namespace thinwire
