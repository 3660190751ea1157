#include "coordinator/plan/plan.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/devices.h"
#include "config/kept.h"
#include "config/piece_codec.h"
#include "config/specs.h"
#include "config/stage_memory.h"
#include "config/stash.h"
#include "coordinator/plan/break_even.h"
#include "coordinator/plan/exchange_costs.h"
#include "coordinator/plan/step_times.h"
#include "coordinator/plan/sum_costs.h"
#include "coordinator/plan/warnings.h"
#include "models/cost.h"
#include "models/frozen.h"
#include "models/parts.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

bool HasBatchNorm(const std::vector<LayerSpec>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    return layer.kind == LayerKind::kBatchNorm || HasBatchNorm(layer.body) ||
           HasBatchNorm(layer.shortcut);
  });
}

// Returns the trainable elements of a block.
double ElementsOf(const BlockSpec& block) {
  int64_t elements = 0;
  for (const ParameterSpec& parameter : Parameters(block)) {
    if (parameter.is_trained()) elements += parameter.shape.elements();
  }
  return static_cast<double>(elements);
}

// Returns the bytes of a step.
int64_t BytesOf(const SentByMachine& sent, const PlannedExchange& exchange) {
  return sent.at_cuts + sent.in_sums +
         static_cast<int64_t>(exchange.per_step * static_cast<double>(sent.in_exchange));
}

// Within these bounds all sums of a simulation are finite numbers.
constexpr double kLeastLinkRate = 1, kMostLinkRate = 1e18;  // bits per second
constexpr double kLeastSwapRate = 1;                        // bytes per second
constexpr double kMostMilliseconds = 1e12;

class Planner {
 public:
  // `replica` is the result of ReplicaOf for the experiment.
  Planner(const Experiment& experiment, const Experiment& replica,
          const PlanAssumptions& assumptions, const Speeds& speeds)
      : all_(experiment), experiment_(replica), speeds_(speeds) {
    plan_.assumptions = assumptions;
    plan_.compute_source = speeds.compute_source;
    plan_.codec_source = speeds.codec_source;
    plan_.transport = speeds.transport;
    plan_.layer_seconds = speeds.layer_seconds;
  }

  absl::StatusOr<Plan> Make() {
    RETURN_IF_ERROR(CheckAssumptions(plan_.assumptions));
    ASSIGN_OR_RETURN(partition_, PartitionFrom(experiment_));
    ASSIGN_OR_RETURN(schedule_, ScheduleFrom(experiment_));
    ASSIGN_OR_RETURN(slices_, SlicesFrom(experiment_, partition_.model.positions));
    ASSIGN_OR_RETURN(compute_, ComputeFrom(experiment_));
    ASSIGN_OR_RETURN(optimizer_, OptimizerFrom(experiment_));
    if (!partition_.cuts.empty()) tied_ = FindTiedWeight(partition_.model);
    assert(speeds_.blocks.size() == partition_.model.blocks.size());
    ASSIGN_OR_RETURN(keeping_, KeepingsFrom(experiment_, partition_.model));
    ASSIGN_OR_RETURN(kept_bits_, KeptBitsOf(experiment_, partition_));
    segments_ = SegmentCosts(partition_.model, partition_.cuts, keeping_);
    RETURN_IF_ERROR(LayOut());
    ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment_.data()));
    records_ = MayRecord(plan_.grid.parts, slices(), data.packs_documents);
    plan_.model = partition_.model.name;
    plan_.batch_size = all_.data().batch_size();
    plan_.microbatches = experiment_.pipeline().microbatches();
    plan_.microbatch_size =
        (experiment_.data().batch_size() + plan_.microbatches - 1) / plan_.microbatches;
    plan_.schedule = Name(schedule_);
    if (slices() > 1) absl::StrAppend(&plan_.schedule, ":", slices());
    plan_.precision = experiment_.precision();
    plan_.clip_norm = optimizer_.clip_norm;
    plan_.deterministic = OpsOptionsFrom(experiment_).deterministic;
    plan_.warmup_epochs = experiment_.compression().warmup_epochs();
    plan_.warmup_steps = experiment_.compression().warmup_steps();
    ASSIGN_OR_RETURN(messages_, MessageCosts::New(experiment_, partition_, slices_, speeds_));
    ASSIGN_OR_RETURN(sums_, SumCosts::New(experiment_, partition_, plan_.grid.parts, speeds_));
    ASSIGN_OR_RETURN(plan_.state, PlanState(experiment_));
    ASSIGN_OR_RETURN(plan_.warnings, PlanWarnings(experiment_));
    RETURN_IF_ERROR(AddExchange());
    for (const BlockSpec& block : partition_.model.blocks) {
      plan_.batch_norm = plan_.batch_norm || HasBatchNorm(block.layers);
    }
    RETURN_IF_ERROR(AddBlocks());
    for (int stage = 0; stage < num_stages(); ++stage) RETURN_IF_ERROR(AddStage(stage));
    AddOuter();
    RETURN_IF_ERROR(AddBoundaries());
    RETURN_IF_ERROR(AddSums());
    RETURN_IF_ERROR(AddSent());
    const StepTimes times({plan_, partition_, schedule_, slices_, *messages_, *sums_,
                           exchanges_.back(), exact_exchange_, speeds_.transport});
    plan_.compute_seconds = times.ComputeSeconds();
    for (const double rate : plan_.assumptions.bits_per_second) {
      ASSIGN_OR_RETURN(const StepEstimate step, times.At(rate));
      plan_.steps.push_back(step);
    }
    return plan_;
  }

 private:
  int tied_cut() const { return static_cast<int>(partition_.cuts.size()); }
  int num_stages() const { return partition_.placement.stages; }
  int slices() const { return std::max(1, static_cast<int>(slices_.size())); }

  // Lays the machines out, and finds what that with most parts has of the model.
  absl::Status LayOut() {
    plan_.parts = PartsOf(all_);
    const int most = static_cast<int>(ReplicasOf(all_)) * plan_.parts;
    const int carriers = plan_.assumptions.carriers;
    ASSIGN_OR_RETURN(plan_.grid, GridOf(all_, carriers == 0 ? most : carriers));
    here_ = partition_.model;
    const ReplicaRange carried = CarriedParts(plan_.grid.parts - 1);
    KeepParts(carried.first, carried.end, &here_.blocks);
    segments_here_ = SegmentCosts(here_, partition_.cuts, keeping_);
    return absl::OkStatus();
  }

  ReplicaRange CarriedParts(int place) const {
    return CarriedBy(place, plan_.grid.parts, plan_.parts);
  }

  absl::Status AddExchange() {
    ASSIGN_OR_RETURN(replicas_, ReplicasFrom(all_));
    PlannedExchange& planned = plan_.exchange;
    planned.replicas = replicas_.count;
    planned.way = replicas_.exchange;
    planned.carriers = plan_.grid.replicas;
    planned.every = replicas_.every;
    planned.fragments = replicas_.fragments;
    planned.overlap = replicas_.overlap;
    ASSIGN_OR_RETURN(const uint64_t an_epoch, StepsPerEpoch(all_));
    const auto steps = static_cast<double>(an_epoch);
    planned.per_step = std::ceil(steps / static_cast<double>(planned.every)) / steps;
    ASSIGN_OR_RETURN(const ExchangeCosts costs, ExchangeOf({0, plan_.parts}, /*exactly=*/false));
    const int places = plan_.grid.parts;
    const bool are_alike = places == 1 || planned.replicas == 1;
    for (int place = 0; place < places; ++place) {
      exchanges_.push_back(costs.exchange);
      if (are_alike) continue;
      ASSIGN_OR_RETURN(ExchangeCosts of_place, ExchangeOf(CarriedParts(place), /*exactly=*/false));
      exchanges_.back() = std::move(of_place.exchange);
    }
    ASSIGN_OR_RETURN(const ExchangeCosts exact,
                     ExchangeOf(CarriedParts(places - 1), /*exactly=*/true));
    exact_exchange_ = exact.exchange;
    planned.contributions = PlannedDirection(replicas_.contributions);
    planned.contributions += costs.contributions.cost;
    planned.average = PlannedDirection(replicas_.average);
    planned.average += costs.sums.cost;
    const std::vector<std::string> names = SegmentNames(partition_.model, partition_.cuts);
    for (const auto& [segment, does] : replicas_.segments) planned.own[names[segment]] = does;
    for (uint64_t& bytes : plan_.state.stage_memory_bytes) bytes *= plan_.exchange.carried();
    return absl::OkStatus();
  }

  // Returns the exchange of machines that have these parts.
  absl::StatusOr<ExchangeCosts> ExchangeOf(const ReplicaRange& parts, bool exactly) const {
    return CostsOfExchange(all_, plan_.grid.replicas, parts, speeds_, exactly);
  }

  // Takes the outer optimizer to be as fast as the optimizer.
  void AddOuter() {
    if (!replicas_.trains_locally()) return;
    double& seconds = plan_.exchange.outer_seconds;
    for (const PlannedStage& stage : plan_.stages) {
      seconds = std::max(seconds, stage.update_seconds);
    }
  }

  // Returns what a machine keeps of an exchange: the sum of gradients, and `remembered` elements of
  // each replica that it carries.
  int64_t ExchangeMemoryBytes(int64_t parameters, int64_t remembered, bool on_gpu) const {
    if (replicas_.count == 1 && !replicas_.trains_locally()) return 0;
    const auto copies =
        static_cast<int64_t>((1 + LocalCopies(on_gpu)) * static_cast<double>(parameters));
    return static_cast<int64_t>(sizeof(float)) * (copies + remembered * plan_.exchange.carried());
  }

  // Returns how many copies of its parameters a machine keeps for local steps: the shared values,
  // the outer momentum, and for each of several replicas its own and what the optimizer remembers.
  double LocalCopies(bool on_gpu) const {
    if (!replicas_.trains_locally()) return 0;
    const int carried = plan_.exchange.carried();
    const double remembered = std::max(OptimizerBuffers(optimizer_, /*hidden=*/false, on_gpu),
                                       OptimizerBuffers(optimizer_, /*hidden=*/true, on_gpu));
    return 1 + (replicas_.outer.momentum > 0 ? 1 : 0) +
           (carried > 1 ? carried * (1 + remembered) : 0);
  }

  // Adds what each machine sends. Those of a row all have the same messages at cuts.
  absl::Status AddSent() {
    std::vector<int64_t> at_cuts(num_stages());
    for (const PlannedBoundary& boundary : plan_.boundaries) {
      if (boundary.in_memory) continue;
      at_cuts[boundary.upstream_stage] += boundary.activations.likely_wire_bytes;
      at_cuts[boundary.downstream_stage] += boundary.gradients.likely_wire_bytes;
    }
    const CarrierGrid& grid = plan_.grid;
    plan_.sent.resize(static_cast<size_t>(grid.count() * num_stages()));
    for (int place = 0; place < grid.parts; ++place) {
      const Exchange& exchange = exchanges_[place];
      for (int stage = 0; stage < num_stages(); ++stage) {
        ASSIGN_OR_RETURN(const int64_t in_sums, SentInSums(place, stage));
        for (int row = 0; row < grid.replicas; ++row) {
          SentByMachine& sent = plan_.sent[(row * grid.parts + place) * num_stages() + stage];
          const auto replicas = static_cast<int64_t>(exchange.CarriedBy(row).size());
          sent.at_cuts = replicas * at_cuts[stage];
          sent.in_sums = replicas * in_sums;
          if (exchange.pieces.empty()) continue;
          sent.in_exchange = static_cast<int64_t>(SentBytes(exchange, stage, row));
        }
      }
    }
    return absl::OkStatus();
  }

  // Returns the bytes of partial sums that a machine at that place sends for a replica.
  absl::StatusOr<int64_t> SentInSums(int place, int stage) const {
    if (plan_.grid.parts == 1) return 0;
    int64_t bytes = 0;
    for (int chunk = 0; chunk < partition_.placement.chunks_per_stage(); ++chunk) {
      const BlockRange blocks =
          SegmentBlocks(partition_.model, partition_.cuts, partition_.placement.At(stage, chunk));
      for (const bool gradient : {false, true}) {
        ASSIGN_OR_RETURN(const MessageCost cost,
                         sums_->OfStep(blocks, CarriedParts(place), gradient, CodedSums(gradient),
                                       plan_.grid.parts));
        bytes += cost.likely_wire_bytes;
      }
    }
    return bytes;
  }

  Coded CodedSums(bool gradient) const {
    const PlannedDirection& direction = gradient ? plan_.sums->gradients : plan_.sums->activations;
    return {direction.codec, direction.feedback};
  }

  absl::Status AddStage(int stage) {
    PlannedStage planned;
    // Elements that a machine has, and those of them that are kept of each replica.
    int64_t parameters = 0, remembered = 0;
    ASSIGN_OR_RETURN(planned.device, DeviceOf(experiment_, stage));
    for (int chunk = 0; chunk < partition_.placement.chunks_per_stage(); ++chunk) {
      const SegmentRange& segments = partition_.placement.At(stage, chunk);
      for (int segment = segments.first; segment < segments.end; ++segment) {
        planned.parameters += segments_[segment].parameters;
        parameters += segments_here_[segment].parameters;
        remembered += segments_here_[segment].parameters * CopiesOfReplica(replicas_, segment);
        planned.forward_flops += segments_[segment].forward_flops;
        planned.recomputed_flops += segments_[segment].recomputed_flops;
      }
      AddChunk(SegmentBlocks(partition_.model, partition_.cuts, segments), &planned);
    }
    ExposeMoves(&planned);
    // A device that is chosen later may be the CPU.
    const bool on_gpu = absl::StartsWith(planned.device, "cuda");
    const int64_t of_exchange = ExchangeMemoryBytes(parameters, remembered, on_gpu);
    const StageMemory memory = Memory(on_gpu);
    planned.memory_bytes = static_cast<int64_t>(memory.FullestBytes(stage)) + of_exchange;
    planned.fixed_bytes = static_cast<int64_t>(memory.FixedBytes(stage)) + of_exchange;
    planned.most_in_flight = memory.MostInFlight(stage);
    plan_.stages.push_back(std::move(planned));
    return absl::OkStatus();
  }

  // Adds what each block keeps, and what it costs to keep less.
  absl::Status AddBlocks() {
    const std::vector<int64_t> kept = KeptByBlock(here_, partition_.cuts);
    ASSIGN_OR_RETURN(const auto stash, StashFrom(experiment_));
    CodingSpeed speed;
    if (stash) speed = SpeedOf(StashCoding(*stash), speeds_);
    for (int segment = 0; segment <= tied_cut(); ++segment) {
      const BlockRange range = SegmentBlocks(here_, partition_.cuts, segment);
      for (int i = range.first; i < range.last; ++i) {
        PlannedBlock block;
        block.name = here_.blocks[i].name;
        block.stage = partition_.placement.StageOf(segment);
        block.does = keeping_[i];
        block.kept_bytes = plan_.microbatch_size * kept[i] * static_cast<int64_t>(SizeOf(compute_));
        KeepLess(i, speed, &block);
        plan_.blocks.push_back(std::move(block));
      }
    }
    return absl::OkStatus();
  }

  // Fills in what a block keeps as it does, and what that costs.
  void KeepLess(int index, const CodingSpeed& speed, PlannedBlock* block) const {
    const auto element_bytes = static_cast<int64_t>(SizeOf(compute_));
    auto bytes = static_cast<double>(block->kept_bytes);
    if (block->does.recompute && index >= FirstTrainedBlock(partition_.model)) {
      bytes = static_cast<double>(plan_.microbatch_size * here_.blocks[index].in.elements() *
                                  element_bytes);
      block->again_seconds = ForwardSeconds(index);
    }
    if (block->does.stash) {
      block->coding_seconds =
          bytes * (speed.encode_seconds_per_byte + speed.decode_seconds_per_byte);
      const double element_bits = 8 * static_cast<double>(element_bytes);
      bytes *= kept_bits_.stash.value_or(element_bits) / element_bits;
    }
    if (block->does.swap) {
      block->moving_seconds = 2 * bytes / plan_.assumptions.swap_bytes_per_second;
      bytes = 0;
    }
    block->bytes = static_cast<int64_t>(bytes);
  }

  // Returns the seconds of a block's forward pass of a microbatch.
  double ForwardSeconds(int block) const {
    return static_cast<double>(plan_.microbatch_size) * SecondsHere(block).forward +
           speeds_.layer_seconds * static_cast<double>(CountLayers(here_.blocks[block]));
  }

  // Adds to the backward passes what it takes longer to move what is swapped than to compute.
  static void ExposeMoves(PlannedStage* stage) {
    const double exposed =
        stage->moving_seconds - (stage->forward_seconds + stage->backward_seconds);
    if (!(stage->moving_seconds > 0) || exposed <= 0) return;
    for (PlannedChunk& chunk : stage->chunks) {
      chunk.exposed_seconds = exposed * chunk.moving_seconds / stage->moving_seconds;
      chunk.backward_seconds += chunk.exposed_seconds;
    }
    stage->backward_seconds += exposed;
  }

  StageMemory Memory(bool on_gpu) const {
    return {partition_,
            segments_here_,
            keeping_,
            kept_bits_,
            optimizer_,
            schedule_,
            static_cast<int>(plan_.microbatches),
            slices(),
            plan_.microbatch_size,
            compute_,
            on_gpu,
            on_gpu && records_,
            static_cast<int64_t>(experiment_.data().batch_size()),
            replicas_.count};
  }

  void AddChunk(const BlockRange& blocks, PlannedStage* stage) const {
    const auto samples = static_cast<double>(plan_.microbatch_size);
    PlannedChunk chunk;
    chunk.first_block = partition_.model.blocks[blocks.first].name;
    chunk.last_block = partition_.model.blocks[blocks.last - 1].name;
    for (int block = blocks.first; block < blocks.last; ++block) {
      const BlockSeconds seconds = SecondsHere(block);
      const double pass =
          speeds_.layer_seconds * static_cast<double>(CountLayers(here_.blocks[block]));
      const bool goes_back = block >= FirstTrainedBlock(partition_.model);
      const double backward = samples * seconds.backward + (goes_back ? 2 * pass : 0);
      const PlannedBlock& kept = plan_.blocks[block];
      // A codec takes about as long in either direction.
      chunk.forward_seconds += ForwardSeconds(block) + kept.coding_seconds / 2;
      chunk.backward_seconds += backward + kept.again_seconds + kept.coding_seconds / 2;
      chunk.moving_seconds += kept.moving_seconds;
      chunk.weight_seconds += backward * WeightShare(block);
      chunk.pass_seconds += pass;
      stage->update_seconds += seconds.update;
    }
    stage->forward_seconds += chunk.forward_seconds;
    stage->backward_seconds += chunk.backward_seconds;
    stage->moving_seconds += chunk.moving_seconds;
    stage->chunks.push_back(std::move(chunk));
  }

  // Returns what a block takes on the machine with most parts: its share of the FLOPs, and of the
  // parameters that are updated.
  BlockSeconds SecondsHere(int block) const {
    BlockSeconds seconds = speeds_.blocks[block];
    if (plan_.grid.parts == 1) return seconds;
    const BlockSpec &all = partition_.model.blocks[block], &here = here_.blocks[block];
    const double flops = ForwardFlops(all), elements = ElementsOf(all);
    const double share = flops > 0 ? ForwardFlops(here) / flops : 1;
    seconds.forward *= share;
    seconds.backward *= share;
    seconds.update *= elements > 0 ? ElementsOf(here) / elements : 1;
    return seconds;
  }

  // Returns the share of a block's backward pass that computes the gradients of weights, without
  // what is recomputed. It goes by FLOPs.
  double WeightShare(int block) const {
    const double flops = BackwardFlops(here_, block);
    return flops > 0 ? WeightFlops(here_.blocks[block]) / flops : 0;
  }

  absl::Status AddBoundaries() {
    const Placement& placement = partition_.placement;
    for (int cut = 0; cut < tied_cut(); ++cut) {
      PlannedBoundary boundary;
      boundary.name = partition_.cuts[cut].name;
      boundary.upstream_stage = placement.StageOf(cut);
      boundary.downstream_stage = placement.StageOf(cut + 1);
      boundary.in_memory = boundary.upstream_stage == boundary.downstream_stage;
      boundary.elements = segments_[cut].boundary_elements;
      RETURN_IF_ERROR(AddBoundary(cut, std::move(boundary)));
    }
    if (!tied_) return absl::OkStatus();
    PlannedBoundary boundary;
    boundary.name = kTiedCut;
    boundary.downstream_stage = num_stages() - 1;
    boundary.in_memory = num_stages() == 1;
    boundary.elements = tied_->shape.elements();
    return AddBoundary(tied_cut(), std::move(boundary));
  }

  // Adds what parts exchange.
  absl::Status AddSums() {
    if (plan_.parts == 1) return absl::OkStatus();
    ASSIGN_OR_RETURN(const SumsSpec spec, SumsFrom(experiment_, partition_.model));
    PlannedBoundary boundary;
    boundary.name = kSums;
    boundary.downstream_stage = num_stages() - 1;
    boundary.in_memory = plan_.grid.parts == 1;
    boundary.elements = sums_->Elements();
    const BlockRange all{0, static_cast<int>(partition_.model.blocks.size())};
    const ReplicaRange parts{0, plan_.parts};
    for (const bool gradient : {false, true}) {
      PlannedDirection direction(gradient ? spec.gradients : spec.activations);
      const Coded coded{direction.codec, direction.feedback};
      ASSIGN_OR_RETURN(const MessageCost counted,
                       sums_->OfStep(all, parts, gradient, coded, plan_.parts));
      ASSIGN_OR_RETURN(const MessageCost sent,
                       sums_->OfStep(all, parts, gradient, coded, plan_.grid.parts));
      direction += counted;
      direction.break_even_bits_per_second = BreakEvenBitsPerSecond(
          static_cast<double>(sent.raw_bytes), static_cast<double>(sent.likely_wire_bytes),
          direction.encode_seconds + direction.decode_seconds);
      (gradient ? boundary.gradients : boundary.activations) = direction;
    }
    plan_.sums = std::move(boundary);
    return absl::OkStatus();
  }

  absl::Status AddBoundary(int cut, PlannedBoundary boundary) {
    for (bool gradient : {false, true}) {
      ASSIGN_OR_RETURN(const DirectionSpec does,
                       DirectionFrom(DirectionOf(experiment_, boundary.name, gradient), gradient));
      PlannedDirection& planned = gradient ? boundary.gradients : boundary.activations;
      ASSIGN_OR_RETURN(planned, Direction(cut, gradient, does));
    }
    plan_.boundaries.push_back(std::move(boundary));
    return absl::OkStatus();
  }

  // Returns whether gradients cross there.
  bool CrossesBack(int cut) const {
    return cut == tied_cut() || HasGradients(partition_.model, partition_.cuts[cut]);
  }

  // Sums over the messages of a full step.
  absl::StatusOr<PlannedDirection> Direction(int cut, bool gradient,
                                             const DirectionSpec& does) const {
    PlannedDirection direction(does);
    if (gradient && !CrossesBack(cut)) return direction;
    const int microbatches = cut == tied_cut() ? 1 : static_cast<int>(plan_.microbatches);
    const int messages = cut == tied_cut() ? 1 : microbatches * slices();
    for (int m = 0; m < messages; ++m) {
      const bool is_exact =
          does.epilogue_only &&
          !InCoolDown(cut, static_cast<int>(segments_.size()), microbatches, m / slices());
      direction.exact_messages += is_exact;
      ASSIGN_OR_RETURN(const MessageCost message,
                       messages_->Of({cut, gradient, m},
                                     is_exact ? Coded() : Coded{direction.codec, does.feedback}));
      direction += message;
    }
    if (cut != tied_cut()) {
      const bool passes_norm = plan_.clip_norm > 0 && CrossesBack(cut);
      const int64_t sums = passes_norm ? messages_->SumBytes(cut, gradient) : 0;
      const int64_t besides = sums + messages_->BasisBytes(cut, gradient);
      direction.wire_bytes += besides;
      direction.likely_wire_bytes += besides;
    }
    direction.break_even_bits_per_second = BreakEvenBitsPerSecond(
        static_cast<double>(direction.raw_bytes), static_cast<double>(direction.likely_wire_bytes),
        direction.encode_seconds + direction.decode_seconds);
    return direction;
  }

  const Experiment& all_;         // as it was given
  const Experiment& experiment_;  // of one replica
  const Speeds& speeds_;
  Plan plan_;
  Partition partition_;
  std::optional<TiedWeight> tied_;  // set if the cuts separate it from its copy
  OptimizerSpec optimizer_;
  ScheduleKind schedule_ = ScheduleKind::kOneForwardOneBackward;
  std::vector<int64_t> slices_;  // result of SlicesFrom
  DType compute_ = DType::kF32;
  std::vector<BlockKeeping> keeping_;  // of each block
  KeptBits kept_bits_;
  bool records_ = false;  // whether a GPU may record passes
  std::vector<SegmentCost> segments_;
  Model here_;  // without the parts that the machine with most of them lacks
  std::vector<SegmentCost> segments_here_;
  ReplicasSpec replicas_;
  std::vector<Exchange> exchanges_;  // by place in a row; the last one has most parts
  Exchange exact_exchange_;
  std::optional<MessageCosts> messages_;
  std::optional<SumCosts> sums_;
};

}  // namespace

absl::StatusOr<Experiment> ReplicaOf(const Experiment& experiment) {
  const uint64_t replicas = ReplicasOf(experiment);
  if (replicas == 1) return experiment;
  ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(experiment));
  Experiment replica = OfOneReplica(experiment);
  replica.mutable_data()->set_limit((samples + replicas - 1) / replicas);
  return replica;
}

absl::Status CheckAssumptions(const PlanAssumptions& assumptions) {
  for (const double rate : assumptions.bits_per_second) {
    if (rate >= kLeastLinkRate && (rate <= kMostLinkRate || std::isinf(rate))) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--link_mbit: ", rate / 1e6, ", want ", kLeastLinkRate / 1e6, " to ", kMostLinkRate / 1e6));
  }
  const double swap = assumptions.swap_bytes_per_second;
  if (!(swap >= kLeastSwapRate && swap <= kMostLinkRate)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--swap_gbps: ", swap / 1e9, ", want ", kLeastSwapRate / 1e9, " to ", kMostLinkRate / 1e9));
  }
  if (!(assumptions.rtt_ms >= 0 && assumptions.rtt_ms <= kMostMilliseconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rtt_ms: ", assumptions.rtt_ms, ", want 0 to ", kMostMilliseconds));
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> MakePlan(const Experiment& experiment, const PlanAssumptions& assumptions,
                              const Speeds& speeds) {
  ASSIGN_OR_RETURN(const Experiment replica, ReplicaOf(experiment));
  return Planner(experiment, replica, assumptions, speeds).Make();
}

int64_t StepWireBytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const SentByMachine& sent : plan.sent) bytes += BytesOf(sent, plan.exchange);
  return bytes;
}

int64_t MachineWireBytes(const Plan& plan) {
  int64_t most = 0;
  for (const SentByMachine& sent : plan.sent) {
    most = std::max(most, BytesOf(sent, plan.exchange));
  }
  return most;
}

int64_t LargestMemoryBytes(const Plan& plan) {
  int64_t most = 0;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    most = std::max(
        most, plan.stages[i].memory_bytes + static_cast<int64_t>(plan.state.stage_memory_bytes[i]));
  }
  return most;
}

}  // namespace thinwire
