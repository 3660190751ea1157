// Costs of the segments of a cut model: the numbers behind `thinwire plan`. They are estimates
// without the kernels' own workspace and layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/enum_names.h"
#include "models/keeping.h"
#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

// Cost of one segment.
struct SegmentCost {
  int64_t parameters = 0;         // trainable elements, without copies of other parameters
  int64_t hidden_parameters = 0;  // part of these with ParameterSpec::hidden
  int64_t copied_parameters = 0;  // elements of such copies (ParameterSpec::tied_to)
  // Elements that are not trained, copies included; they have no gradient and no buffers.
  int64_t fixed_parameters = 0;
  int64_t fixed_bytes = 0;  // of their values in memory (models/base_weights.h)
  // Elements, in the compute type, of the largest weight that is expanded for its products.
  int64_t expanded_elements = 0;
  double forward_flops = 0;    // of one sample
  double attention_flops = 0;  // part of it
  double backward_flops = 0;   // of one sample (models/frozen.h)
  // Part of forward_flops that recomputed blocks do a second time, in the backward pass.
  double recomputed_flops = 0;
  // Elements per sample that a forward pass keeps for its backward pass, each tensor once; none
  // before the first trained block. These
  // are inputs of convolutions, linear layers, norms, max-poolings, maxouts, GELUs, SwiGLUs,
  // embeddings and attentions, outputs of ReLUs and attentions, the normalisers of attentions,
  // and what an adapter makes of its input.
  // The batch norm, addition and ReLU at the end of a residual block are one pass, which keeps
  // nothing in between. What waits elsewhere (BlockKeeping::swap) is not among them.
  int64_t kept_elements = 0;
  // Part of kept_elements that no stash encodes: all of blocks without one, and of others
  // normalisers, inputs of max-poolings, maxouts and embeddings.
  int64_t exact_elements = 0;
  // Part of kept_elements that is the segment's own input, and whether exact_elements has it.
  int64_t input_elements = 0;
  bool input_is_exact = false;
  // Elements per sample that wait elsewhere.
  int64_t swapped_elements = 0;
  // Elements per sample that exist while the passes of one block run whose tensors are put away
  // otherwise: those of the block that keeps most, its input included.
  int64_t block_elements = 0;
  // Elements per sample that exist only while the backward of one recomputed block runs: those of
  // the block that keeps most.
  int64_t recomputed_elements = 0;
  // Elements per sample that a split backward pass keeps for its weight part: inputs and output
  // gradients of the layers with HasWaitingWeight.
  int64_t waiting_elements = 0;
  // Part of these that are output gradients, without those of the layer before the one in
  // work_elements, whose input's gradient it is.
  int64_t deferred_elements = 0;
  // Elements per sample of the keys and values of the attention layers. Slices of sequences keep
  // these once, and their gradients in fp32.
  int64_t cached_elements = 0;
  // Elements of weights that kernels have in layouts of their own as well: of convolutions, on a
  // CPU for either direction, and of linear layers, if they compute in another type than fp32.
  int64_t convolution_elements = 0, linear_elements = 0;
  // Elements per sample that a backward pass works with besides what is kept, where that is most:
  // the gradients of a layer's input and output, and of its block's input.
  int64_t work_elements = 0;
  // Elements per sample of the model's result, if it is here. Their gradients are kept between a
  // microbatch's passes.
  int64_t result_elements = 0;
  bool can_be_recorded = false;  // CanBeRecorded
  // Elements per sample of the message across the cut after the segment, in either direction; 0 at
  // the end.
  int64_t boundary_elements = 0;
};

// Parts that a backward pass computes again, to keep less until then (checkpointing: Chen et al.,
// 2016).
enum class Recompute {
  kNone,
  kBlocks,  // blocks that are WorthRecomputing keep only their input, and run forward twice
};

// Returns the names in experiment files: "blocks" (base/enum_names.h).
NameTable<Recompute> TableOf(Recompute);

// Returns true for a block that keeps more elements besides its input than the input has. An
// embedding and a head keep less.
bool WorthRecomputing(const BlockSpec& block);

// Returns whether passes may be recorded at all (nn/segment/recorded_segment.h): they are of whole
// samples, of one document each, and wait for no other part.
bool MayRecord(int parts, int slices, bool packs_documents);

// Returns whether a recording may run the passes of these blocks: they draw no random numbers, need
// no token ids besides their input, and put nothing away.
bool CanBeRecorded(const Model& model, const BlockRange& range,
                   const std::vector<BlockKeeping>& keeping);

// Returns what blocks do if all do the same; those run again that are WorthRecomputing.
std::vector<BlockKeeping> AllKeeping(const Model& model, const BlockKeeping& all);

// Returns the cost of each of the cuts + 1 segments. `keeping` has what each block does; empty: all
// keep what they keep.
std::vector<SegmentCost> SegmentCosts(const Model& model, const std::vector<Cut>& cuts,
                                      const std::vector<BlockKeeping>& keeping = {});

// Returns, for each block, the elements per sample that it keeps if all keep what they keep. They
// add up to the kept_elements of the segments.
std::vector<int64_t> KeptByBlock(const Model& model, const std::vector<Cut>& cuts);

// State of a stage in training, for which memory is counted.
struct TrainingMemory {
  int64_t samples_in_flight = 1;  // samples of the microbatches in Held::in_flight
  int64_t microbatch_samples = 1;
  // Samples of the microbatches in Held::waiting.
  int64_t samples_waiting = 0;
  int64_t samples_cached = 0;  // samples with a slice in flight; 0: there are no slices
  int element_bytes = 4;       // of an activation
  // Bits in memory of a kept element in a stash, or of the segment's input, which is kept as the
  // payload that came; absent: they are kept as they are.
  std::optional<double> stash_bits, payload_bits;
  // Memory that the optimizer takes for an element, and for one of a hidden parameter, in fp32
  // numbers. SGD with momentum: 1 and 1; AdamW: 2 and 2; Muon: 2 and 1.
  double optimizer_buffers = 1, hidden_buffers = 1;
};

// Returns the bytes of tensors that exist as they are only while the passes of a block run: they
// run again, or are put away otherwise. Of several segments, one needs them at a time.
int64_t WorkingBytes(const SegmentCost& cost, const TrainingMemory& memory);

// Returns the bytes of fp32 parameters, gradients, optimizer buffers and of what is kept for
// backward, WorkingBytes included.
int64_t TrainingBytes(const SegmentCost& cost, const TrainingMemory& memory);

}  // namespace thinwire
