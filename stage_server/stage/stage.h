// One stage as data: the checked form of an experiment, what it says of each boundary, and which
// messages go exact. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "base/steady_time.h"
#include "compress/feedback/direction_spec.h"
#include "compress/kernels.h"
#include "data/sampler.h"
#include "models/bottleneck.h"
#include "models/cost.h"
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
#include "wire/message.h"

namespace thinwire {

// One device's three interfaces. Ops belong to one run; device and kernels to the process.
struct Backend {
  Device* device = nullptr;
  std::shared_ptr<Ops> ops;
  CodecKernels* kernels = nullptr;
  // The same with the threads that ops use, of one run; null: only one thread each.
  std::shared_ptr<CodecKernels> threaded_kernels = nullptr;
  DirectCopies* copies = nullptr;      // null: the device has none
  DeviceDescription description = {};  // empty for the CPU
  std::string note = {};               // for "auto": which device was taken and why, in one line
  // Called with a line about what is slower than it could be; may be empty. Any thread.
  std::function<void(const std::string&)> on_note = {};
};

// The checked form of an experiment, for one stage.
struct StageSpec {
  Model model;
  std::vector<Cut> cuts;
  std::optional<TiedWeight> tied;  // the weight that has a copy, if there is one
  Placement placement;
  int stage = 0;     // from 0
  uint64_t run = 0;  // digest of the run's id, as frames carry it
  uint64_t generation = 0;
  std::string link_secret;  // which links between processes show

  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int microbatches = 1;
  std::vector<int64_t> slice_positions;  // of a sequence in training, in order; none: it is whole
  int64_t batch_size = 0;
  std::shared_ptr<Patience> patience = std::make_shared<Patience>();  // of every wait
  std::shared_ptr<StepTrace> trace;                                   // null: none

  std::vector<DirectionSpec> activations, gradients;  // one per cut; the last is the tied cut's
  int64_t warmup_epochs = 0;  // messages go exact in these epochs and in these steps
  uint64_t warmup_steps = 0;
  int64_t error_every = 0;
  CaptureSpec capture;

  DType compute = DType::kF32;
  OptimizerSpec optimizer;
  Recompute recompute = Recompute::kNone;
  uint64_t init_seed = 0, data_seed = 0, codec_seed = 0, dropout_seed = 0;
  ShuffleKind shuffle = ShuffleKind::kSamples;

  int stages() const { return placement.stages; }
  bool first() const { return stage == 0; }  // it has the first segment
  bool last() const { return stage + 1 == stages(); }
  int slices() const { return std::max(1, static_cast<int>(slice_positions.size())); }
  // Of a slice, where sequences are cut.
  int64_t FirstPosition(int slice) const;
  int chunks() const { return placement.chunks_per_stage(); }
  const SegmentRange& segments(int chunk) const { return placement.At(stage, chunk); }
  bool begins_model(int chunk) const { return segments(chunk).first == 0; }
  bool ends_model(int chunk) const { return segments(chunk).end > static_cast<int>(cuts.size()); }
  // Index of the cut to the chunk before and behind, which are at the stage before and behind. Not
  // where the chunk begins or ends the model.
  int upstream_cut(int chunk) const { return segments(chunk).first - 1; }
  int downstream_cut(int chunk) const { return segments(chunk).end - 1; }
  // The exchange of both gradients of `tied` in a cut model has the number behind the cuts'. The
  // first stage's end sends the embedding's gradient as activations travel, the last stage's end
  // the head's against them.
  int tied_cut() const { return static_cast<int>(cuts.size()); }
  bool has_tied_cut() const { return tied.has_value() && !cuts.empty(); }
  // Whether it has one end here and the other at another stage.
  bool has_tied_link() const { return has_tied_cut() && stages() > 1 && (first() || last()); }
  std::string CutName(int cut) const;
  // Whether both sides of a cut of the model are at one stage, and then in one chunk.
  bool IsInner(int cut) const { return placement.ChunkOf(cut) == placement.ChunkOf(cut + 1); }
};

// Evaluation has no backward to bound it: this many batches may be under way at a cut.
inline constexpr int kEvaluationWindow = 2;

// The spec of one direction of cut `cut`, or of the tied cut, the same at both ends but for the
// peer, which is left empty.
BoundarySpec BoundaryOf(const StageSpec& spec, int cut, Direction direction,
                        const Backend& backend);

// How epoch `epoch` over `samples` samples is made of batches.
EpochSpec EpochOf(const StageSpec& spec, uint32_t epoch, int64_t samples);

// The same of the tied cut, whose messages are batches of their own: one a step, and the rows of
// the weight are its samples.
EpochSpec TiedEpochOf(const StageSpec& spec, const EpochSpec& epoch);

// Whether a chunk reads the inputs of samples: as the first, or because a bottleneck at one of its
// cuts wants token ids, which do not travel; and whether it reads anything of them.
bool ReadsInputs(const StageSpec& spec, int chunk);
inline bool ReadsSamples(const StageSpec& spec, int chunk) {
  return spec.ends_model(chunk) || ReadsInputs(spec, chunk);
}
// Whether any chunk of the stage does.
bool ReadsInputs(const StageSpec& spec);
bool ReadsSamples(const StageSpec& spec);

// True if any message of the run needs to know which samples it holds.
bool NeedsSampleIds(const StageSpec& spec);

// Which microbatch of what: everything that an action needs to know.
struct Work {
  int chunk = 0;  // of the stage: which of them acts
  Phase phase = PHASE_TRAIN;
  uint32_t epoch = 0;
  uint64_t step = 0;         // as in FrameHeader
  uint32_t microbatch = 0;   // where the stage has slices, in training: the unit's number
  int microbatches = 1;      // of the whole batch
  int64_t batch_size = 0;    // likewise
  int64_t samples = 0;       // of this microbatch
  int64_t first_sample = 0;  // its place in the batch
  bool compress = false;     // no warm-up, and no evaluation without codecs
  SteadyTime deadline;

  MessageKey key() const { return {phase, DIRECTION_UNSPECIFIED, 0, epoch, step, microbatch}; }
};

// What the executor does for a microbatch of a training step, and for the step as a whole.
PlannedSlice MicrobatchSlice(const StageSpec& spec, const Work& work, const char* name);
PlannedSlice StepSlice(const StageSpec& spec, const Work& work, const char* name);

// Whether the message of `work` at `boundary` is compressed. Both of its ends decide this alike,
// whatever the number of processes.
bool Compresses(const StageSpec& spec, const Work& work, const BoundarySpec& boundary);

}  // namespace thinwire
