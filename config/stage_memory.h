// Memory that a stage takes in training, as plans count it and stage servers check it.
#pragma once

#include <cstdint>
#include <vector>

#include "config/stash.h"
#include "models/cost.h"
#include "models/keeping.h"
#include "models/partition.h"
#include "nn/optimizer_spec.h"
#include "schedule/schedule.h"
#include "tensor/dtype.h"

namespace thinwire {

// Bytes of a process on a CPU besides tensors: compiled kernels, threads and connections. At each
// end of a cut so many messages of its size are there, leaving and coming, as tensors and as
// frames. Both are measurements (tests/bench/memory_vs_plan.py).
inline constexpr int64_t kProgramBytes = 4000000, kMessagesAtCut = 4;
// An end of a cut receives from a GPU of the same machine in so many slots at most, of so many
// bytes at most, for so many messages of a batch at least (transport/device_slots.h).
inline constexpr int64_t kReceivingSlots = 16, kReceivingSlotBytes = 4 << 20,
                         kReceivingMessages = 2;
// By so much the chunks of a recording's memory exceed what it holds, on average, for each segment
// and microbatch (tensor/cuda/arena.h).
inline constexpr int64_t kRecordingSlackBytes = 1 << 20;

// Inputs that the memory follows from. All that it refers to must outlive it.
struct StageMemory {
  const Partition& partition;
  const std::vector<SegmentCost>& costs;  // of segments as they are on the machine
  const std::vector<BlockKeeping>& keeping;
  const KeptBits& kept_bits;
  const OptimizerSpec& optimizer;
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int microbatches = 1;  // of a replica
  int slices = 1;
  int64_t microbatch_samples = 1;  // of the largest one
  DType compute = DType::kF32;
  bool on_gpu = false;
  // Whether passes of the segments that CanBeRecorded are recorded (on a GPU).
  bool records = false;
  int64_t replica_samples = 1;  // of a replica's batch
  int replicas = 1;

  // Returns the bytes at the moment when the stage is fullest, without what replicas exchange.
  // Floating, as an integer may overflow.
  double FullestBytes(int stage) const;
  // Returns the part of it that does not depend on samples: parameters, also in the layouts of
  // kernels, gradients and what the optimizer remembers, without messages and the program.
  double FixedBytes(int stage) const;
  // Returns the most microbatches that a chunk of the stage has in flight.
  int MostInFlight(int stage) const;

 private:
  std::vector<std::vector<Held>> StatesOf(int stage) const;
  TrainingMemory OfMicrobatch() const;
  bool IsRecorded(int segment) const { return records && costs[segment].can_be_recorded; }
  // Returns the bytes of a stage's chunk that holds so much, without RecordedBytes and
  // WorkingBytes; *working becomes at least the most of these.
  double ChunkBytes(const SegmentRange& segments, const Held& held, double* working) const;
  // Return the bytes that passes work with, and of weights in the layouts of kernels.
  double WorkBytes(int stage) const;
  double LayoutBytes(const SegmentRange& segments) const;
  // Returns what recordings keep: for each microbatch that a chunk has in flight at most, all that
  // its passes need.
  double RecordedBytes(int stage) const;
  // Returns the bytes of a recording of one microbatch's passes through a segment.
  double SlotBytes(const SegmentCost& cost) const;
  // Returns the bytes of a segment that do not depend on samples.
  double SegmentFixedBytes(const SegmentCost& cost) const;
  // Returns the bytes in which a stage on a GPU receives what comes through a cut.
  double ReceivingBytes(int cut) const;
  // Returns the bytes of messages that leave and come, and on a CPU of the program itself.
  double MessageBytes(int stage) const;
};

}  // namespace thinwire
