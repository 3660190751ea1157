// What the segments of a cut model cost: the numbers behind `thinwire plan`. Estimates: kernels'
// own workspace and layouts are not in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

struct SegmentCost {
  int64_t parameters = 0;         // trainable elements, without copies of others
  int64_t hidden_parameters = 0;  // of these: ParameterSpec::hidden
  int64_t copied_parameters = 0;  // elements of such copies (ParameterSpec::tied_to)
  int64_t fixed_parameters = 0;   // of what is not trained, copies too: no gradient, no buffers
  double forward_flops = 0;       // one sample; backward is twice that
  double attention_flops = 0;     // of it
  // The share of it that Recompute::kBlocks does a second time, in the backward pass.
  double recomputed_flops = 0;
  // Elements per sample that a forward keeps for its backward: inputs of convolutions, linear
  // layers, norms, poolings, maxouts, GELUs, SwiGLUs, embeddings and attentions, outputs of ReLUs
  // and attentions and the latter's normalisers, each tensor once. The batch norm, addition and
  // ReLU at the end of a residual block are one pass, and what lies between is not kept.
  int64_t kept_elements = 0;
  // Elements per sample that are there only while the backward of one block runs: the most that a
  // block keeps which is run again.
  int64_t recomputed_elements = 0;
  // Elements per sample that a split backward pass keeps for its weight part: inputs and outputs'
  // gradients of the layers that HasWaitingWeight.
  int64_t waiting_elements = 0;
  // Keys and values of the attention layers, per sample: what slices of sequences keep once, and
  // their gradients in fp32 besides.
  int64_t cached_elements = 0;
  // Elements per sample of the message across the cut behind, in either direction; 0 at the end.
  int64_t boundary_elements = 0;
};

// What backward passes do again, to keep less until then (checkpoints: Chen et al., 2016).
enum class Recompute {
  kNone,
  kBlocks,  // blocks that are WorthRecomputing keep their input and run forward twice
};

// Names as experiment files spell them: "blocks". The inverse gives InvalidArgument with the known
// ones.
const char* Name(Recompute recompute);
absl::Status FromName(const std::string& name, Recompute* to);
std::vector<Recompute> AllRecomputes();

// True for a block that keeps more than twice its input. An embedding and a head keep less.
bool WorthRecomputing(const BlockSpec& block);

// One per segment, cuts + 1.
std::vector<SegmentCost> SegmentCosts(const Model& model, const std::vector<Cut>& cuts,
                                      Recompute recompute = Recompute::kNone);

struct TrainingMemory {
  int64_t samples_in_flight = 1;  // of Held's microbatches, as below
  int64_t microbatch_samples = 1;
  int64_t samples_waiting = 0;
  int64_t samples_cached = 0;  // of whose sequences a slice is in flight; 0: there are no slices
  int element_bytes = 4;       // of an activation
  // fp32 numbers that the optimizer remembers of an element, and of one that is hidden: SGD with
  // momentum 1 and 1, AdamW 2 and 2, Muon 2 and 1.
  int optimizer_buffers = 1, hidden_buffers = 1;
};

// Bytes of fp32 parameters, gradients and optimizer buffers and of what is kept for backward.
int64_t TrainingBytes(const SegmentCost& cost, const TrainingMemory& memory);

}  // namespace thinwire
