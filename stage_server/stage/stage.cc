#include "stage_server/stage/stage.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/kept.h"
#include "config/sections.h"
#include "models/cost.h"
#include "models/frozen.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Returns threaded kernels where computation waits for the codec: at cuts inside the process, and
// everywhere if a batch is one microbatch. Elsewhere codec and computation overlap.
CodecKernels* KernelsFor(const StageSpec& spec, int cut, const Backend& backend) {
  const bool waits =
      cut == spec.tied_cut() || spec.IsInner(cut) || spec.microbatches * spec.slices() == 1;
  return waits ? KernelsOfWaiting(backend) : backend.kernels;
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

CaptureSpec CaptureOf(const Experiment& experiment, const std::vector<Cut>& cuts) {
  const CaptureConfig& config = experiment.capture();
  CaptureSpec capture;
  capture.steps.insert(config.steps().begin(), config.steps().end());
  for (size_t i = 0; i < cuts.size(); ++i) {
    const bool is_named = std::count(config.cuts().begin(), config.cuts().end(), cuts[i].name) > 0;
    if (is_named) capture.cuts.insert(static_cast<uint32_t>(i));
  }
  for (const std::string& what : config.what()) {
    (what == "gradients" ? capture.gradients : capture.activations) = true;
  }
  return capture;
}

absl::Status AddDirections(const Experiment& experiment, const std::string& cut, StageSpec* spec) {
  ASSIGN_OR_RETURN(DirectionSpec activations,
                   DirectionFrom(DirectionOf(experiment, cut, /*gradient=*/false), false));
  ASSIGN_OR_RETURN(DirectionSpec gradients,
                   DirectionFrom(DirectionOf(experiment, cut, /*gradient=*/true), true));
  spec->activations.push_back(std::move(activations));
  spec->gradients.push_back(std::move(gradients));
  return absl::OkStatus();
}

}  // namespace

CodecKernels* KernelsOfWaiting(const Backend& backend) {
  return backend.threaded_kernels ? backend.threaded_kernels.get() : backend.kernels;
}

absl::StatusOr<StageSpec> StageSpecFrom(const Experiment& experiment, int stage) {
  StageSpec spec;
  ASSIGN_OR_RETURN(static_cast<Partition&>(spec), PartitionFrom(experiment));
  spec.stage = stage;
  if (stage < 0 || stage >= spec.stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", stage, ", want 0 to ", spec.stages() - 1));
  }
  ASSIGN_OR_RETURN(spec.schedule, ScheduleFrom(experiment));
  spec.microbatches = static_cast<int>(experiment.pipeline().microbatches());
  ASSIGN_OR_RETURN(spec.replicas, ReplicasFrom(experiment));
  ASSIGN_OR_RETURN(spec.slice_positions, SlicesFrom(experiment, spec.model.positions));
  spec.agrees_on_updates = KeepsStates(experiment);
  spec.batch_size = experiment.data().batch_size();
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  spec.score_unit = data.score_unit;
  spec.packs_documents = data.packs_documents;
  spec.patience =
      std::make_shared<Patience>(absl::Seconds(experiment.pipeline().deadline_seconds()));
  spec.tied = FindTiedWeight(spec.model);
  spec.first_trained = FirstTrainedBlock(spec.model);
  ASSIGN_OR_RETURN(spec.sums, SumsFrom(experiment, spec.model));
  for (const Cut& cut : spec.cuts) RETURN_IF_ERROR(AddDirections(experiment, cut.name, &spec));
  if (spec.has_tied_cut()) RETURN_IF_ERROR(AddDirections(experiment, kTiedCut, &spec));
  spec.warmup_epochs = experiment.compression().warmup_epochs();
  spec.warmup_steps = experiment.compression().warmup_steps();
  spec.error_every = experiment.metrics().error_every();
  spec.capture = CaptureOf(experiment, spec.cuts);
  ASSIGN_OR_RETURN(spec.shuffle, ShuffleFrom(experiment));
  ASSIGN_OR_RETURN(spec.compute, ComputeFrom(experiment));
  ASSIGN_OR_RETURN(spec.keeping, KeepingsFrom(experiment, spec.model));
  ASSIGN_OR_RETURN(spec.stash, StashFrom(experiment));
  ASSIGN_OR_RETURN(spec.swap, SwapFrom(experiment));
  spec.keeps_payloads = KeepsPayloads(experiment);
  ASSIGN_OR_RETURN(spec.kept_bits, KeptBitsOf(experiment, spec));
  ASSIGN_OR_RETURN(spec.optimizer, OptimizerFrom(experiment));
  spec.seeds = SeedsFrom(experiment);
  return spec;
}

int64_t StageSpec::FirstPosition(int slice) const {
  return std::accumulate(slice_positions.begin(), slice_positions.begin() + slice, int64_t{0});
}

std::vector<int> StageSpec::LinkedWith(int other_stage) const {
  if (grids.empty()) return {kSameCarrier};
  return Sharing(grid, carrier, grids[static_cast<size_t>(other_stage)], replicas.count);
}

ReplicaRange StageSpec::SharedWith(int other_stage, int other_carrier) const {
  const ReplicaRange own = carried();
  const ReplicaRange other =
      grids[static_cast<size_t>(other_stage)].CarriedBy(other_carrier, replicas.count);
  return {std::max(own.first, other.first), std::min(own.end, other.end)};
}

std::string StageSpec::CutName(int cut) const {
  return cut == tied_cut() ? kTiedCut : cuts[cut].name;
}

bool Stashes(const StageSpec& spec, int segment) {
  const BlockRange blocks = SegmentBlocks(spec.model, spec.cuts, segment);
  return std::any_of(spec.keeping.begin() + blocks.first, spec.keeping.begin() + blocks.last,
                     [](const BlockKeeping& keeping) { return keeping.puts_away(); });
}

bool BeginsWithStash(const StageSpec& spec, int segment) {
  return spec.keeping[SegmentBlocks(spec.model, spec.cuts, segment).first].stash;
}

std::vector<ParameterSpec> ParametersOfSegment(const StageSpec& spec, int segment) {
  std::vector<ParameterSpec> all;
  const BlockRange blocks = SegmentBlocks(spec.model, spec.cuts, segment);
  for (int block = blocks.first; block < blocks.last; ++block) {
    for (ParameterSpec& one : Parameters(spec.model.blocks[block])) all.push_back(std::move(one));
  }
  return all;
}

bool IsRecordable(const StageSpec& spec, int segment) {
  const BlockRange blocks = SegmentBlocks(spec.model, spec.cuts, segment);
  return MayRecord(spec.sums.parts, spec.slices(), spec.packs_documents) &&
         CanBeRecorded(spec.model, blocks, spec.keeping);
}

bool KeepsPayloads(const StageSpec& spec, int cut, const Backend& backend) {
  if (!spec.keeps_payloads) return false;
  // What is in a payload does not go through the stash, so it may not depend on the schedule.
  if (BeginsWithStash(spec, cut + 1)) return true;
  const int chunk = spec.placement.ChunkOf(cut + 1), stage = spec.placement.StageOf(cut + 1);
  const int of_stage = chunk / spec.stages();
  const std::vector<std::vector<Held>> states = FullestStates(
      spec.schedule, stage, spec.stages(), spec.microbatches, spec.chunks(), spec.slices());
  const bool are_several = std::any_of(
      states.begin(), states.end(),
      [of_stage](const std::vector<Held>& state) { return state[of_stage].in_flight > 1; });
  return are_several && (backend.device->is_host() || !IsRecordable(spec, cut + 1));
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
  boundary.counts_norm = spec.row() == 0 || spec.replicas.trains_locally();
  boundary.keeps_support = is_activation && spec.gradients[cut].codec.needs_support();
  const bool asks_for_documents =
      is_activation || boundary.codec.first_position == FirstPosition::kExact;
  boundary.packs_documents = spec.packs_documents && cut != spec.tied_cut() && asks_for_documents;
  boundary.codec_seed = spec.seeds.codec;
  boundary.error_every = spec.error_every;
  boundary.patience = spec.patience;
  boundary.trace = spec.trace;
  boundary.keeps_payloads =
      is_activation && cut != spec.tied_cut() && KeepsPayloads(spec, cut, backend);
  boundary.device = backend.device;
  boundary.kernels = KernelsFor(spec, cut, backend);
  return boundary;
}

EpochSpec OfReplicas(EpochSpec epoch, const ReplicaRange& replicas, int messages) {
  epoch.first_carried = replicas.first * messages;
  epoch.end_carried = replicas.end * messages;
  return epoch;
}

EpochSpec EpochOf(const StageSpec& spec, uint32_t epoch, int64_t samples) {
  EpochSpec of;
  of.shuffle = {spec.shuffle, spec.seeds.data, spec.batch_size};
  of.microbatches = spec.batch_microbatches();
  of.epoch = epoch;
  of.samples = samples;
  return OfReplicas(of, spec.carried(), spec.microbatches);
}

EpochSpec TiedEpochOf(const StageSpec& spec, const EpochSpec& epoch) {
  const int64_t rows = spec.tied->shape[0];
  EpochSpec of = epoch;
  of.shuffle = {ShuffleKind::kSamples, epoch.shuffle.seed, 0};
  of.microbatches = spec.replicas.count;
  of.shuffle.batch_size = rows * spec.replicas.count;
  of.samples = of.shuffle.batch_size * NumBatches(epoch.samples, epoch.shuffle.batch_size);
  return OfReplicas(of, spec.carried(), /*messages=*/1);
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
