#include "stage_server/stage/stage.h"

#include <algorithm>
#include <numeric>

#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Returns threaded kernels where computation waits for the codec: at cuts inside the process, and
// everywhere if a batch is one microbatch. Elsewhere codec and computation overlap.
CodecKernels* KernelsFor(const StageSpec& spec, int cut, const Backend& backend) {
  const bool waits =
      cut == spec.tied_cut() || spec.IsInner(cut) || spec.microbatches * spec.slices() == 1;
  return waits && backend.threaded_kernels ? backend.threaded_kernels.get() : backend.kernels;
}

// Fills in what crosses a cut and how many of its messages may be under way.
void DescribeCut(const StageSpec& spec, int cut, BoundarySpec* boundary) {
  boundary->sample = spec.model.blocks[spec.cuts[cut].block].out;
  boundary->compute = spec.compute;
  boundary->max_batch = spec.batch_size;
  boundary->replica_messages = spec.microbatches * spec.slices();
  boundary->slice_positions = spec.slice_positions;
  boundary->capacity = kEvaluationWindow;
  if (!spec.IsInner(cut)) {
    boundary->capacity = std::max(
        boundary->capacity, QueueCapacity(spec.schedule, spec.placement.ChunkOf(cut), spec.stages(),
                                          spec.microbatches, spec.chunks(), spec.slices()));
  }
  const std::optional<LearnedBasis> basis = LearnedBasisAt(spec.model, spec.cuts[cut]);
  if (!basis) return;
  boundary->basis = basis->shape;
  ++boundary->capacity;  // its gradient comes behind the step's other messages
}

// Fills in the same for the tied cut. Parameters and gradients are fp32, and neither end is ever a
// step ahead. A replica without samples has no passes that would hold the next replica's message
// back.
void DescribeTied(const TiedWeight& tied, int replicas, BoundarySpec* boundary) {
  boundary->sample = {1, tied.shape[1]};
  boundary->compute = DType::kF32;
  boundary->max_batch = tied.shape[0];
  boundary->capacity = replicas > 1 ? 2 : 1;
}

}  // namespace

int64_t StageSpec::FirstPosition(int slice) const {
  return std::accumulate(slice_positions.begin(), slice_positions.begin() + slice, int64_t{0});
}

std::string StageSpec::CutName(int cut) const {
  return cut == tied_cut() ? kTiedCut : cuts[cut].name;
}

BoundarySpec BoundaryOf(const StageSpec& spec, int cut, Direction direction,
                        const Backend& backend) {
  BoundarySpec boundary;
  boundary.name = spec.CutName(cut);
  boundary.cut = cut;
  boundary.direction = direction;
  if (cut == spec.tied_cut()) {
    DescribeTied(*spec.tied, spec.replicas.count, &boundary);
  } else {
    DescribeCut(spec, cut, &boundary);
  }
  const bool is_activation = direction == DIRECTION_ACTIVATION;
  static_cast<DirectionSpec&>(boundary) =
      is_activation ? spec.activations[cut] : spec.gradients[cut];
  boundary.replicas = spec.replicas.count;
  // With local steps each replica has a norm of its own.
  boundary.counts_norm = spec.carrier == 0 || spec.replicas.trains_locally();
  boundary.keeps_support = is_activation && spec.gradients[cut].codec.needs_support();
  boundary.codec_seed = spec.codec_seed;
  boundary.error_every = spec.error_every;
  boundary.patience = spec.patience;
  boundary.trace = spec.trace;
  boundary.device = backend.device;
  boundary.kernels = KernelsFor(spec, cut, backend);
  return boundary;
}

EpochSpec EpochOf(const StageSpec& spec, uint32_t epoch, int64_t samples) {
  EpochSpec of;
  of.shuffle = {spec.shuffle, spec.data_seed, spec.batch_size};
  of.microbatches = spec.batch_microbatches();
  of.first_carried = spec.carried().first * spec.microbatches;
  of.end_carried = spec.carried().end * spec.microbatches;
  of.epoch = epoch;
  of.samples = samples;
  return of;
}

EpochSpec TiedEpochOf(const StageSpec& spec, const EpochSpec& epoch) {
  const int64_t rows = spec.tied->shape[0];
  EpochSpec of = epoch;
  of.shuffle = {ShuffleKind::kSamples, epoch.shuffle.seed, 0};
  of.microbatches = spec.replicas.count;
  of.first_carried = spec.carried().first;
  of.end_carried = spec.carried().end;
  of.shuffle.batch_size = rows * spec.replicas.count;
  of.samples = of.shuffle.batch_size * NumBatches(epoch.samples, epoch.shuffle.batch_size);
  return of;
}

bool ReadsInputs(const StageSpec& spec, int chunk) {
  const BlockRange blocks = SegmentBlocks(spec.model, spec.cuts, spec.segments(chunk));
  const auto reads_ids = [](const BlockSpec& block) { return ReadsIds(block.layers); };
  return spec.begins_model(chunk) ||
         std::any_of(spec.model.blocks.begin() + blocks.first,
                     spec.model.blocks.begin() + blocks.last, reads_ids);
}

bool ReadsInputs(const StageSpec& spec) {
  for (int chunk = 0; chunk < spec.chunks(); ++chunk) {
    if (ReadsInputs(spec, chunk)) return true;
  }
  return false;
}

bool ReadsSamples(const StageSpec& spec) { return spec.last() || ReadsInputs(spec); }

bool NeedsSampleIds(const StageSpec& spec) {
  const auto needs = [](const DirectionSpec& does) {
    const StateKey key = does.feedback.key;
    return does.feedback.kind != FeedbackKind::kNone &&
           (key == StateKey::kSample || key == StateKey::kBatch);
  };
  return std::any_of(spec.activations.begin(), spec.activations.end(), needs) ||
         std::any_of(spec.gradients.begin(), spec.gradients.end(), needs);
}

bool Compresses(const StageSpec& spec, const Work& work, const BoundarySpec& boundary) {
  if (!work.compress) return false;
  if (!IsTrainingPass(work.phase)) return !boundary.feedback.evaluates_exactly();
  if (boundary.direction == DIRECTION_ACTIVATION || !spec.gradients[boundary.cut].epilogue_only) {
    return true;
  }
  // Gradients of a cut are received by the segment before it, whose index is the cut's.
  return InCoolDown(
      static_cast<int>(boundary.cut), static_cast<int>(spec.cuts.size()) + 1, work.microbatches,
      static_cast<int>(work.microbatch) / spec.slices() - work.replica * spec.microbatches);
}

PlannedSlice StepSlice(const StageSpec& spec, const Work& work, const char* name) {
  PlannedSlice planned;
  if (!spec.trace || !IsTrainingPass(work.phase) || !spec.trace->Wants(work.step)) return planned;
  planned.trace = spec.trace.get();
  planned.slice.name = name;
  planned.slice.step = work.step;
  return planned;
}

PlannedSlice MicrobatchSlice(const StageSpec& spec, const Work& work, const char* name) {
  PlannedSlice planned = StepSlice(spec, work, name);
  planned.slice.microbatch = static_cast<int>(work.microbatch);
  return planned;
}

}  // namespace thinwire
