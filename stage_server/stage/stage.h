// One stage as data: the checked form of an experiment, the spec of each boundary, and which
// messages go exact. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend/load.h"
#include "base/steady_time.h"
#include "compress/feedback/direction_spec.h"
#include "compress/kernels.h"
#include "config/replicas_spec.h"
#include "config/specs.h"
#include "config/stash.h"
#include "config/swap.h"
#include "config/tensor_parts.h"
#include "data/sampler.h"
#include "models/bottleneck.h"
#include "models/keeping.h"
#include "models/model.h"
#include "models/partition.h"
#include "models/tied_weight.h"
#include "nn/ops.h"
#include "nn/optimizer.h"
#include "schedule/schedule.h"
#include "stage_server/boundary/boundary.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/patience.h"
#include "stage_server/boundary/step_trace.h"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/memory_meter.h"
#include "stage_server/swap/swap_file.h"
#include "wire/message.h"

namespace thinwire {

// The interfaces of one device. Ops belong to one run; the device and `kernels` to the process.
struct Backend : OpenedDevice {
  std::shared_ptr<Ops> ops;
  std::shared_ptr<Ops> host_ops = nullptr;  // the CPU's, beside those of another device
  // Kernels of one run that use the threads of `ops`; null if these have one thread only.
  std::shared_ptr<CodecKernels> threaded_kernels = nullptr;
  bool device_slots = true;   // of links (wire/link.h)
  SwapFileOptions swap = {};  // of stages that swap to a file; its folder is empty: they may not
  // Called with a line about anything slower than it could be; may be empty. Any thread.
  std::function<void(const std::string&)> on_note = {};
  // Called likewise with a line about what a trace lacks.
  std::function<void(const std::string&)> on_trace_note = {};
};

// Returns the kernels of codecs for which computation waits, so that its threads are free.
CodecKernels* KernelsOfWaiting(const Backend& backend);

// The checked form of an experiment, for one stage.
struct StageSpec : Partition {
  std::optional<TiedWeight> tied;  // the trained weight that has a copy, if any
  int first_trained = 0;           // index of the first block that is not frozen
  int stage = 0;                   // index of this stage, from 0
  uint64_t run = 0;                // digest of the run's id, as frames carry it
  uint64_t generation = 0;
  std::string link_secret;  // shown by links between processes

  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int microbatches = 1;   // of each replica
  ReplicasSpec replicas;  // that share a batch
  CarrierGrid grid;       // of the machines of this stage that carry them
  int carrier = 0;        // index of this one
  // The grids of all stages, if they are on different numbers of machines; else empty: a machine
  // is linked with those of its own index.
  std::vector<CarrierGrid> grids;
  std::vector<int64_t> slice_positions;  // slices of a training sequence, in order; empty: whole
  bool begins_anew = true;               // False: it gets parameters from elsewhere.
  bool agrees_on_updates = false;  // each step's update waits until all carriers can do theirs
  int64_t batch_size = 0;
  bool packs_documents = false;  // whether samples have documents that do not see one another
  double score_unit = 0;         // of labels, as in DatasetInfo; 0: they are classes
  std::shared_ptr<Patience> patience = std::make_shared<Patience>();  // limit of every wait
  std::shared_ptr<StepTrace> trace;                                   // null: not traced
  std::shared_ptr<MemoryMeter> memory;                                // null: not measured

  std::vector<DirectionSpec> activations, gradients;  // one per cut, the tied cut's last
  int64_t warmup_epochs = 0;  // messages go exact in this many first epochs and steps
  uint64_t warmup_steps = 0;
  int64_t error_every = 0;
  CaptureSpec capture;
  SumsSpec sums;  // of tensor-parallel parts

  DType compute = DType::kF32;
  OptimizerSpec optimizer;
  std::vector<BlockKeeping> keeping;  // what each block of the model does
  std::optional<DirectionSpec>
      stash;                      // what encodes the tensors of those that stash; absent: nothing
  SwapTo swap = SwapTo::kDevice;  // where what blocks that swap keep waits
  bool keeps_payloads = false;    // of activations, in place of what they decode to
  KeptBits kept_bits;             // what both come to
  Seeds seeds;
  ShuffleKind shuffle = ShuffleKind::kSamples;

  int stages() const { return placement.stages; }
  bool first() const { return stage == 0; }  // has the first segment
  bool last() const { return stage + 1 == stages(); }
  int row() const { return grid.RowOf(carrier); }
  int place() const { return grid.PlaceOf(carrier); }
  // Returns the carriers of another stage that this one is linked with; kSameCarrier: the one that
  // has the same index.
  static constexpr int kSameCarrier = -1;
  std::vector<int> LinkedWith(int other_stage) const;
  // Returns the replicas that both carry.
  ReplicaRange SharedWith(int other_stage, int other_carrier) const;
  // Return the replicas that this machine carries, and the parts.
  ReplicaRange carried() const { return grid.CarriedBy(row(), replicas.count); }
  ReplicaRange carried_parts() const { return CarriedBy(place(), grid.parts, sums.parts); }
  // Returns the number of microbatches of a whole batch.
  int batch_microbatches() const { return replicas.count * microbatches; }
  int slices() const { return std::max(1, static_cast<int>(slice_positions.size())); }
  // Returns the first position of a slice, where sequences are cut into slices.
  int64_t FirstPosition(int slice) const;
  int chunks() const { return placement.chunks_per_stage(); }
  const SegmentRange& segments(int chunk) const { return placement.At(stage, chunk); }
  bool begins_model(int chunk) const { return segments(chunk).first == 0; }
  bool ends_model(int chunk) const { return segments(chunk).end > static_cast<int>(cuts.size()); }
  // Return the index of the cut to the chunk before and behind, which belong to the stage before
  // and behind. Invalid where the chunk begins or ends the model.
  int upstream_cut(int chunk) const { return segments(chunk).first - 1; }
  int downstream_cut(int chunk) const { return segments(chunk).end - 1; }
  // The tied cut exchanges the two gradients of `tied` when the model is cut; its index follows
  // those of the cuts. The first stage's end sends the embedding's gradient in the direction of
  // activations. The last stage's end sends the head's in the direction of gradients.
  int tied_cut() const { return static_cast<int>(cuts.size()); }
  bool has_tied_cut() const { return tied.has_value() && !cuts.empty(); }
  // Returns whether one end of the tied cut is at this stage and the other at another one.
  bool has_tied_link() const { return has_tied_cut() && stages() > 1 && (first() || last()); }
  std::string CutName(int cut) const;
  // Returns whether gradients cross a cut of the model (models/frozen.h).
  bool has_gradients(int cut) const { return first_trained <= cuts[cut].block; }
  // Returns whether both sides of a cut of the model are at one stage, and so in one chunk.
  bool IsInner(int cut) const { return placement.ChunkOf(cut) == placement.ChunkOf(cut + 1); }
};

// Returns whether a segment, or its first block alone, stashes what it keeps.
bool Stashes(const StageSpec& spec, int segment);
bool BeginsWithStash(const StageSpec& spec, int segment);

// Returns the parameters of a segment in model order, those of all tensor-parallel parts.
std::vector<ParameterSpec> ParametersOfSegment(const StageSpec& spec, int segment);

// Returns the spec of stage `stage` of a resolved experiment. InvalidArgument if the experiment has
// no such stage or config/ refuses it.
absl::StatusOr<StageSpec> StageSpecFrom(const Experiment& experiment, int stage);

// Returns whether a recording may run the passes of a segment (nn/segment/recorded_segment.h). It
// knows one step, one input and whole samples only, of one document each, and nothing is stashed.
bool IsRecordable(const StageSpec& spec, int segment);

// Returns whether the activations that come through a cut are kept as their payloads: at a block
// that stashes, or where several microbatches are in flight behind it and no recording holds the
// memory of its input anyway.
bool KeepsPayloads(const StageSpec& spec, int cut, const Backend& backend);

// Number of batches that may be under way at a cut in evaluation, which has no backward pass to
// bound them.
inline constexpr int kEvaluationWindow = 2;

// Returns the spec of one direction of cut `cut`, or of the tied cut. It is the same at both ends
// except for the peer, which is left empty.
BoundarySpec BoundaryOf(const StageSpec& spec, int cut, Direction direction,
                        const Backend& backend);

// Returns the epoch with the messages of those replicas, of each of which so many come in a step.
EpochSpec OfReplicas(EpochSpec epoch, const ReplicaRange& replicas, int messages);

// Returns how epoch `epoch` over `samples` samples is divided into batches.
EpochSpec EpochOf(const StageSpec& spec, uint32_t epoch, int64_t samples);

// Returns the same for the tied cut. Its samples are the rows of the weight, and each step has one
// message, which is a whole batch.
EpochSpec TiedEpochOf(const StageSpec& spec, const EpochSpec& epoch);

// Return whether a chunk reads the inputs of samples, and whether it reads samples at all. It reads
// inputs if it is the first, or if a bottleneck at one of its cuts needs token ids, which are not
// sent.
bool ReadsInputs(const StageSpec& spec, int chunk);
inline bool ReadsSamples(const StageSpec& spec, int chunk) {
  return spec.ends_model(chunk) || ReadsInputs(spec, chunk);
}
// Return the same for any chunk of the stage.
bool ReadsInputs(const StageSpec& spec);
bool ReadsSamples(const StageSpec& spec);

// Returns whether any message of the run needs to know which samples it holds.
bool NeedsSampleIds(const StageSpec& spec);

// Everything that an action needs to know: which microbatch of what it acts on.
struct Work {
  int chunk = 0;  // index of the acting chunk in the stage
  Phase phase = PHASE_TRAIN;
  uint32_t epoch = 0;
  uint64_t step = 0;            // as in FrameHeader
  uint32_t microbatch = 0;      // index of the unit in training where the stage has slices
  int replica = 0;              // to which it belongs
  int microbatches = 1;         // of the replica
  bool ends_gradients = false;  // no later action adds to the gradients of the chunk's weights
  int fragment = 0;             // of the parameters, where replicas exchange what they learned
  int64_t batch_size = 0;       // of the whole batch
  int64_t samples = 0;          // of this microbatch
  int64_t first_sample = 0;     // index in the batch
  int64_t first_position = 0;   // of a text's part
  int64_t loss_samples = 0;     // with the labels of the mean that is trained; 0: the batch_size
  int64_t loss_labels = 0;      // the labels of these that are not ignored; at the last stage only
  bool compress = false;        // false in warm-up and when evaluating without codecs
  SteadyTime deadline;

  MessageKey key() const { return {phase, DIRECTION_UNSPECIFIED, 0, epoch, step, microbatch}; }
};

// Return the slice `name` of the executor's thread for a microbatch of a training step, or for the
// step as a whole.
PlannedSlice MicrobatchSlice(const StageSpec& spec, const Work& work, const char* name);
PlannedSlice StepSlice(const StageSpec& spec, const Work& work, const char* name);

// Returns whether the message of `work` at `boundary` is compressed. Both ends decide this alike,
// for any number of processes.
bool Compresses(const StageSpec& spec, const Work& work, const BoundarySpec& boundary);

}  // namespace thinwire
