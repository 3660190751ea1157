// What the segments of a cut model cost: the numbers behind `thinwire plan`. Estimates: kernels'
// own workspace and layouts are not in them.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

struct SegmentCost {
  int64_t parameters = 0;    // trainable elements
  double forward_flops = 0;  // one sample; backward is twice that
  // Elements per sample that a forward keeps for its backward: inputs of convolutions, linear
  // layers, norms, poolings and maxouts and outputs of ReLUs, each tensor once. The batch norm,
  // addition and ReLU at the end of a residual block are one pass, and what lies between is not
  // kept.
  int64_t kept_elements = 0;
  // Elements per sample of the message across the cut behind, in either direction; 0 at the end.
  int64_t boundary_elements = 0;
};

// One per segment, cuts + 1.
std::vector<SegmentCost> SegmentCosts(const Model& model, const std::vector<Cut>& cuts);

struct TrainingMemory {
  int64_t samples_in_flight = 1;  // MaxInFlight times the samples of a microbatch
  int element_bytes = 4;          // of an activation
  int optimizer_buffers = 1;      // fp32, per parameter: SGD with momentum 1, AdamW 2
};

// Bytes of fp32 parameters, gradients and optimizer buffers and of what is kept for backward.
int64_t TrainingBytes(const SegmentCost& cost, const TrainingMemory& memory);

}  // namespace thinwire
