#include "models/cost.h"

#include <algorithm>

#include "models/base_weights.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

constexpr Named<Recompute> kRecomputeNames[] = {{Recompute::kNone, "none"},
                                                {Recompute::kBlocks, "blocks"}};

// Returns the normalisers of an attention, or of norms of heads: one for each head and position.
int64_t NormaliserElements(const LayerSpec& layer) {
  const bool normalises_heads = layer.kind == LayerKind::kHeadNorm;
  if (normalises_heads) return layer.in.elements() / HeadSize(layer);
  return layer.kind == LayerKind::kAttention ? layer.heads * layer.in[1] : 0;
}

// Returns how many are here of the elements that a layer has for all positions.
int64_t ElementsHere(const LayerSpec& layer, int64_t elements) {
  if (layer.slices.are_whole()) return elements;
  return elements / layer.slices.positions * layer.slices.PositionsHere();
}

// Returns the elements between the two weights of each adapter.
int64_t AdapterElements(const LayerSpec& layer) {
  if (layer.adapters.empty()) return 0;
  const int64_t rows = layer.out.elements() / layer.out_features;
  return ElementsHere(layer,
                      static_cast<int64_t>(layer.adapters.size()) * layer.adapter_rank * rows);
}

// Returns whether the layer's parts keep the samples that it makes whole.
bool GathersInput(const LayerSpec& layer) {
  return layer.kind == LayerKind::kSum && !layer.slices.are_whole();
}

// Returns the elements that these layers keep. *input_counted says whether their input has been
// counted; on return, whether their output has been.
int64_t KeptElements(const std::vector<LayerSpec>& layers, bool* input_counted) {
  int64_t elements = 0;
  for (const LayerSpec& layer : layers) {
    if (layer.kind == LayerKind::kPart) {  // all parts have the sum's input
      bool part_input_counted = true;
      elements += KeptElements(layer.body, &part_input_counted);
      continue;
    }
    if (KeepsInput(layer) && !*input_counted) {
      elements += ElementsHere(layer, layer.in.elements());
    }
    elements += AdapterElements(layer);
    if (GathersInput(layer)) elements += layer.in.elements();
    for (const auto* branch : {&layer.body, &layer.shortcut}) {
      bool branch_input_counted = true;
      elements += KeptElements(*branch, &branch_input_counted);
    }
    elements += NormaliserElements(layer);
    *input_counted = layer.kind == LayerKind::kReLU || layer.kind == LayerKind::kAttention;
    if (*input_counted) elements += layer.out.elements();
  }
  return elements;
}

int64_t WaitingElements(const std::vector<LayerSpec>& layers) {
  int64_t elements = 0;
  ForEachLayer(layers, [&](const LayerSpec& layer) {
    if (HasWaitingWeight(layer)) elements += layer.in.elements() + layer.out.elements();
  });
  return elements;
}

int64_t CachedElements(const std::vector<LayerSpec>& layers) {
  int64_t elements = 0;
  ForEachLayer(layers, [&](const LayerSpec& layer) {
    // The input holds queries, keys and values; the output is as large as the queries.
    if (layer.kind == LayerKind::kAttention) elements += layer.in.elements() - layer.out.elements();
  });
  return elements;
}

// Returns how many of the elements that these layers keep a stash leaves as they are.
int64_t ExactElements(const std::vector<LayerSpec>& layers) {
  int64_t elements = 0;
  ForEachLayer(layers, [&](const LayerSpec& layer) {
    const bool is_exact = layer.kind == LayerKind::kMaxPool || layer.kind == LayerKind::kMaxout ||
                          layer.kind == LayerKind::kEmbedding;
    elements += NormaliserElements(layer) + (is_exact ? layer.in.elements() : 0);
  });
  return elements;
}

// Returns the elements that the block keeps besides its input.
int64_t KeptBesidesInput(const BlockSpec& block) {
  bool input_counted = true;
  return KeptElements(block.layers, &input_counted);
}

// Adds what a block of a segment keeps. *input_counted says whether the block before keeps its
// output in the same way; on return, whether this one does.
void AddActivations(const BlockSpec& block, const BlockKeeping& keeping, bool begins_segment,
                    bool* input_counted, SegmentCost* cost) {
  const bool keeps_input = !block.layers.empty() && KeepsInput(block.layers.front());
  const bool has_input = begins_segment && (keeps_input || keeping.recompute) && !keeping.swap;
  const int64_t besides = KeptBesidesInput(block);
  if (keeping.puts_away()) {
    cost->block_elements = std::max(cost->block_elements, block.in.elements() + besides);
  }
  int64_t kept = 0, exact = 0;
  if (keeping.recompute) {
    if (!*input_counted) kept = block.in.elements();
    *input_counted = false;
    cost->recomputed_flops += ForwardFlops(block);
    cost->recomputed_elements = std::max(cost->recomputed_elements, besides);
  } else {
    kept = KeptElements(block.layers, input_counted);
    exact = std::min(ExactElements(block.layers), kept);
  }
  if (has_input) {
    cost->input_elements = block.in.elements();
    cost->input_is_exact = !keeping.stash;
  }
  (keeping.swap ? cost->swapped_elements : cost->kept_elements) += kept;
  if (!keeping.swap) cost->exact_elements += keeping.stash ? exact : kept;
}

// Adds what passes need of memory besides, and sets the input's elements of the layer that needs
// most. `ends_model`: the gradients of the block's result are kept anyway.
void AddWork(const BlockSpec& block, bool ends_model, SegmentCost* cost, int64_t* widest_input) {
  ForEachLayer(block.layers, [&](const LayerSpec& layer) {
    const bool is_convolution = layer.kind == LayerKind::kConv2d;
    if (is_convolution || layer.kind == LayerKind::kLinear) {
      const int64_t elements = Parameters(layer).front().shape.elements();
      (is_convolution ? cost->convolution_elements : cost->linear_elements) += elements;
    }
    // GELU is done in the products around it.
    const bool has_result =
        layer.kind != LayerKind::kGelu && !(ends_model && &layer == &block.layers.back());
    const int64_t work =
        layer.in.elements() + (has_result ? layer.out.elements() : 0) + block.in.elements();
    if (HasWaitingWeight(layer)) cost->deferred_elements += layer.out.elements();
    if (work <= cost->work_elements) return;
    cost->work_elements = work;
    *widest_input = layer.in.elements();
  });
}

void AddFixed(const ParameterSpec& parameter, SegmentCost* cost) {
  const int64_t elements = parameter.shape.elements();
  cost->fixed_parameters += elements;
  cost->fixed_bytes += ValueBytes(parameter);
  const bool is_expanded = parameter.format != WeightFormat::kFP32;
  if (is_expanded) cost->expanded_elements = std::max(cost->expanded_elements, elements);
}

SegmentCost CostOf(const Model& model, const BlockRange& range,
                   const std::vector<BlockKeeping>& keeping) {
  SegmentCost cost;
  bool input_counted = false;
  int64_t widest_input = 0;
  const int first_trained = FirstTrainedBlock(model);
  for (int i = range.first; i < range.last; ++i) {
    const BlockSpec& block = model.blocks[i];
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (!parameter.is_trained()) {
        AddFixed(parameter, &cost);
        continue;
      }
      const int64_t elements = parameter.shape.elements();
      (parameter.tied_to.empty() ? cost.parameters : cost.copied_parameters) += elements;
      if (parameter.hidden) cost.hidden_parameters += elements;
    }
    cost.forward_flops += ForwardFlops(block);
    cost.attention_flops += AttentionFlops(block);
    cost.backward_flops += BackwardFlops(model, i);
    cost.waiting_elements += WaitingElements(block.layers);
    cost.cached_elements += CachedElements(block.layers);
    const bool ends_model = i + 1 == static_cast<int>(model.blocks.size());
    AddWork(block, ends_model, &cost, &widest_input);
    if (ends_model) cost.result_elements = block.out.elements();
    if (i < first_trained) continue;
    const bool begins = i == std::max(range.first, first_trained);
    if (!begins && keeping[i] != keeping[i - 1]) input_counted = false;
    AddActivations(block, keeping[i], begins, &input_counted, &cost);
  }
  cost.deferred_elements = std::max<int64_t>(0, cost.deferred_elements - widest_input);
  cost.can_be_recorded = CanBeRecorded(model, range, keeping);
  const bool is_last = range.last == static_cast<int>(model.blocks.size());
  cost.boundary_elements = is_last ? 0 : model.blocks[range.last - 1].out.elements();
  return cost;
}

// Returns the bytes of what is kept for the backward pass.
double KeptBytes(const SegmentCost& cost, const TrainingMemory& memory) {
  constexpr double kByteBits = 8;
  const double element_bits = kByteBits * memory.element_bytes;
  const auto samples = static_cast<double>(memory.samples_in_flight);
  const auto input = static_cast<double>(memory.payload_bits ? cost.input_elements : 0);
  const auto kept = static_cast<double>(cost.kept_elements) - input;
  const auto exact = memory.stash_bits ? static_cast<double>(cost.exact_elements) -
                                             (cost.input_is_exact ? input : 0)
                                       : kept;
  const double bits = exact * element_bits + (kept - exact) * memory.stash_bits.value_or(0) +
                      input * memory.payload_bits.value_or(0);
  return samples * bits / kByteBits;
}

}  // namespace

NameTable<Recompute> TableOf(Recompute) { return {"recompute", kRecomputeNames}; }

bool WorthRecomputing(const BlockSpec& block) {
  return KeptBesidesInput(block) > block.in.elements();
}

bool MayRecord(int parts, int slices, bool packs_documents) {
  return parts == 1 && slices == 1 && !packs_documents;
}

bool CanBeRecorded(const Model& model, const BlockRange& range,
                   const std::vector<BlockKeeping>& keeping) {
  for (int i = range.first; i < range.last; ++i) {
    const std::vector<LayerSpec>& layers = model.blocks[i].layers;
    if (IsRandom(layers) || ReadsIds(layers) || keeping[i].puts_away()) return false;
  }
  return true;
}

std::vector<BlockKeeping> AllKeeping(const Model& model, const BlockKeeping& all) {
  std::vector<BlockKeeping> keeping(model.blocks.size(), all);
  for (size_t i = 0; i < keeping.size(); ++i) {
    keeping[i].recompute = all.recompute && WorthRecomputing(model.blocks[i]);
  }
  return keeping;
}

std::vector<SegmentCost> SegmentCosts(const Model& model, const std::vector<Cut>& cuts,
                                      const std::vector<BlockKeeping>& keeping) {
  const std::vector<BlockKeeping> all = keeping.empty() ? AllKeeping(model, {}) : keeping;
  std::vector<SegmentCost> costs;
  for (int segment = 0; segment <= static_cast<int>(cuts.size()); ++segment) {
    costs.push_back(CostOf(model, SegmentBlocks(model, cuts, segment), all));
  }
  return costs;
}

std::vector<int64_t> KeptByBlock(const Model& model, const std::vector<Cut>& cuts) {
  std::vector<int64_t> kept(model.blocks.size());
  const int first_trained = FirstTrainedBlock(model);
  for (int segment = 0; segment <= static_cast<int>(cuts.size()); ++segment) {
    const BlockRange range = SegmentBlocks(model, cuts, segment);
    bool input_counted = false;
    for (int i = std::max(range.first, first_trained); i < range.last; ++i) {
      kept[i] = KeptElements(model.blocks[i].layers, &input_counted);
    }
  }
  return kept;
}

int64_t WorkingBytes(const SegmentCost& cost, const TrainingMemory& memory) {
  const int64_t of_block = memory.microbatch_samples * cost.block_elements;
  // A swapped block is at work, as much as two are fetched or not yet gone, and one waits to go.
  const int64_t here = std::min(4 * of_block, memory.samples_in_flight * cost.swapped_elements);
  const int64_t decoded = memory.payload_bits ? memory.microbatch_samples * cost.input_elements : 0;
  const int64_t at_work = std::max({here, memory.stash_bits ? of_block : 0, decoded});
  return memory.element_bytes * (at_work + memory.microbatch_samples * cost.recomputed_elements);
}

int64_t TrainingBytes(const SegmentCost& cost, const TrainingMemory& memory) {
  constexpr int64_t kFloatBytes = 4;
  const double copies = 2 + memory.optimizer_buffers;  // value and gradient
  const auto numbers = static_cast<int64_t>(
      std::min(1e18, copies * static_cast<double>(cost.parameters + cost.copied_parameters) +
                         (memory.hidden_buffers - memory.optimizer_buffers) *
                             static_cast<double>(cost.hidden_parameters)));
  return kFloatBytes * numbers + cost.fixed_bytes + memory.element_bytes * cost.expanded_elements +
         (memory.element_bytes + kFloatBytes) * memory.samples_cached * cost.cached_elements +
         memory.element_bytes * memory.samples_waiting * cost.waiting_elements +
         static_cast<int64_t>(KeptBytes(cost, memory)) + WorkingBytes(cost, memory);
}

}  // namespace thinwire
