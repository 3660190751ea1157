#include "config/stage_memory.h"

#include <algorithm>
#include <optional>

namespace thinwire {
std::vector<std::vector<Held>> StageMemory::StatesOf(int stage) const {
  return FullestStates(schedule, stage, partition.placement.stages, microbatches,
                       partition.placement.chunks_per_stage(), slices);
}

TrainingMemory StageMemory::OfMicrobatch() const {
  TrainingMemory memory;
  memory.microbatch_samples = microbatch_samples;
  memory.element_bytes = static_cast<int>(SizeOf(compute));
  memory.optimizer_buffers = OptimizerBuffers(optimizer, /*hidden=*/false, on_gpu);
  memory.hidden_buffers = OptimizerBuffers(optimizer, /*hidden=*/true, on_gpu);
  memory.stash_bits = kept_bits.stash;
  return memory;
}

double StageMemory::ChunkBytes(const SegmentRange& segments, const Held& held,
                               double* working) const {
  TrainingMemory memory = OfMicrobatch();
  memory.samples_in_flight = (microbatch_samples * held.in_flight + slices - 1) / slices;
  memory.samples_cached = slices > 1 ? memory.samples_in_flight : 0;
  memory.samples_waiting = microbatch_samples * held.waiting;
  double bytes = 0;
  for (int segment = segments.first; segment < segments.end; ++segment) {
    const int first = SegmentBlocks(partition.model, partition.cuts, segment).first;
    const bool keeps_payload = held.in_flight > 1 || keeping[first].stash;
    memory.payload_bits = keeps_payload ? kept_bits.payloads[segment] : std::optional<double>();
    const SegmentCost& cost = costs[segment];
    if (IsRecorded(segment)) {
      bytes += SegmentFixedBytes(cost);
      continue;
    }
    const int64_t results = memory.element_bytes * memory.samples_in_flight * cost.result_elements;
    const int64_t work = WorkingBytes(cost, memory);
    *working = std::max(*working, static_cast<double>(work));
    bytes +=
        static_cast<double>(std::max<int64_t>(0, TrainingBytes(cost, memory) - work + results));
  }
  return bytes;
}

double StageMemory::WorkBytes(int stage) const {
  int64_t most = 0;
  for (int chunk = 0; chunk < partition.placement.chunks_per_stage(); ++chunk) {
    const SegmentRange& segments = partition.placement.At(stage, chunk);
    for (int segment = segments.first; segment < segments.end; ++segment) {
      most = std::max(most, costs[segment].work_elements);
    }
  }
  const int64_t samples = (microbatch_samples + slices - 1) / slices;
  return static_cast<double>(samples * most) * static_cast<double>(SizeOf(compute));
}

double StageMemory::LayoutBytes(const SegmentRange& segments) const {
  int64_t elements = 0;
  for (int segment = segments.first; segment < segments.end; ++segment) {
    elements += (on_gpu ? 1 : 2) * costs[segment].convolution_elements;
    if (compute != DType::kF32) elements += costs[segment].linear_elements;
  }
  return static_cast<double>(elements) * static_cast<double>(SizeOf(compute));
}

double StageMemory::ReceivingBytes(int cut) const {
  // An evaluation sends whole batches.
  const int64_t bytes = replicas * replica_samples *
                        partition.model.blocks[partition.cuts[cut].block].out.elements() *
                        static_cast<int64_t>(SizeOf(compute));
  const Placement& placement = partition.placement;
  const int64_t messages = std::max<int64_t>(
      kReceivingMessages, QueueCapacity(schedule, placement.ChunkOf(cut), placement.stages,
                                        microbatches, placement.chunks_per_stage(), slices));
  const int64_t chunks = (bytes + kReceivingSlotBytes - 1) / kReceivingSlotBytes;
  return static_cast<double>(std::min(kReceivingSlots, chunks * messages) *
                             std::min(bytes, kReceivingSlotBytes));
}

double StageMemory::MessageBytes(int stage) const {
  int64_t elements = 0;
  double receiving = 0;  // on a GPU
  for (size_t i = 0; i < partition.cuts.size(); ++i) {
    const auto segment = static_cast<int>(i);
    const int before = partition.placement.StageOf(segment);
    const int behind = partition.placement.StageOf(segment + 1);
    if (before == behind || (before != stage && behind != stage)) continue;
    const Shape& out = partition.model.blocks[partition.cuts[i].block].out;
    if (on_gpu) receiving += ReceivingBytes(segment);
    elements += (microbatch_samples * out.elements() + slices - 1) / slices;
  }
  if (on_gpu) return receiving;
  return static_cast<double>(kProgramBytes + kMessagesAtCut * elements * SizeOf(compute));
}

double StageMemory::FullestBytes(int stage) const {
  double most = 0;
  for (const std::vector<Held>& state : StatesOf(stage)) {
    double bytes = 0, working = 0;
    for (size_t chunk = 0; chunk < state.size(); ++chunk) {
      bytes += ChunkBytes(partition.placement.At(stage, static_cast<int>(chunk)), state[chunk],
                          &working);
    }
    most = std::max(most, bytes + working);
  }
  for (int chunk = 0; chunk < partition.placement.chunks_per_stage(); ++chunk) {
    most += LayoutBytes(partition.placement.At(stage, chunk));
  }
  return most + RecordedBytes(stage) + WorkBytes(stage) + MessageBytes(stage);
}

double StageMemory::RecordedBytes(int stage) const {
  if (!records) return 0;
  std::vector<int> slots(partition.placement.chunks_per_stage(), 0);
  for (const std::vector<Held>& state : StatesOf(stage)) {
    for (size_t chunk = 0; chunk < state.size(); ++chunk) {
      slots[chunk] = std::max(slots[chunk], state[chunk].in_flight + state[chunk].waiting);
    }
  }
  // Microbatches of the smaller size, if there are two, have memory of their own.
  const int sizes = replica_samples % microbatches == 0 ? 1 : 2;
  double bytes = 0;
  for (size_t chunk = 0; chunk < slots.size(); ++chunk) {
    const SegmentRange& segments = partition.placement.At(stage, static_cast<int>(chunk));
    for (int segment = segments.first; segment < segments.end; ++segment) {
      if (!IsRecorded(segment)) continue;
      // The gradient that a backward pass sends is not gone when the next forward pass begins, but
      // it is when its weight part has run.
      const bool sends_gradient =
          segment > 0 && segment == segments.first && !SplitsBackward(schedule);
      const int held = sizes * (slots[chunk] + (sends_gradient ? 1 : 0));
      bytes += std::min(microbatches, held) * SlotBytes(costs[segment]);
    }
  }
  return bytes;
}

double StageMemory::SlotBytes(const SegmentCost& cost) const {
  // The gradient of a cut's message is there beside it; that of the model's result replaces it.
  const int64_t deferred = SplitsBackward(schedule) ? cost.deferred_elements : 0;
  const int64_t of_sample = cost.kept_elements + cost.recomputed_elements + cost.work_elements +
                            deferred + 2 * cost.boundary_elements + cost.result_elements;
  // A pass adds the gradients of its filters to the others at its end.
  return static_cast<double>(microbatch_samples * SizeOf(compute)) *
             static_cast<double>(of_sample) +
         sizeof(float) * static_cast<double>(cost.convolution_elements) +
         static_cast<double>(kRecordingSlackBytes);
}

double StageMemory::SegmentFixedBytes(const SegmentCost& cost) const {
  TrainingMemory memory = OfMicrobatch();
  memory.samples_in_flight = memory.microbatch_samples = 0;
  return static_cast<double>(TrainingBytes(cost, memory));
}

double StageMemory::FixedBytes(int stage) const {
  double bytes = 0;
  for (int chunk = 0; chunk < partition.placement.chunks_per_stage(); ++chunk) {
    const SegmentRange& segments = partition.placement.At(stage, chunk);
    for (int segment = segments.first; segment < segments.end; ++segment) {
      bytes += SegmentFixedBytes(costs[segment]);
    }
    bytes += LayoutBytes(segments);
  }
  return bytes;
}

int StageMemory::MostInFlight(int stage) const {
  int most = 0;
  for (const std::vector<Held>& state : StatesOf(stage)) {
    for (const Held& held : state) most = std::max(most, held.in_flight);
  }
  return (most + slices - 1) / slices;
}

}  // namespace thinwire
