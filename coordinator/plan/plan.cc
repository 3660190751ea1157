#include "coordinator/plan/plan.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/feedback/direction_spec.h"
#include "config/devices.h"
#include "config/piece_codec.h"
#include "config/specs.h"
#include "coordinator/plan/break_even.h"
#include "coordinator/plan/exchange_costs.h"
#include "coordinator/plan/message_costs.h"
#include "coordinator/plan/step_times.h"
#include "coordinator/plan/warnings.h"
#include "models/cost.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

bool HasBatchNorm(const std::vector<LayerSpec>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    return layer.kind == LayerKind::kBatchNorm || HasBatchNorm(layer.body) ||
           HasBatchNorm(layer.shortcut);
  });
}

// Returns the bytes of a step.
int64_t BytesOf(const SentByMachine& sent, const PlannedExchange& exchange) {
  return sent.at_cuts +
         static_cast<int64_t>(exchange.per_step * static_cast<double>(sent.in_exchange));
}

// Within these bounds all sums of a simulation are finite numbers.
constexpr double kLeastLinkRate = 1, kMostLinkRate = 1e18;  // bits per second
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
    ASSIGN_OR_RETURN(recompute_, RecomputeFrom(experiment_));
    segments_ = SegmentCosts(partition_.model, partition_.cuts, recompute_);
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
    ASSIGN_OR_RETURN(plan_.state, PlanState(experiment_));
    ASSIGN_OR_RETURN(plan_.warnings, PlanWarnings(experiment_));
    RETURN_IF_ERROR(AddExchange());
    for (const BlockSpec& block : partition_.model.blocks) {
      plan_.batch_norm = plan_.batch_norm || HasBatchNorm(block.layers);
    }
    for (int stage = 0; stage < num_stages(); ++stage) RETURN_IF_ERROR(AddStage(stage));
    AddOuter();
    RETURN_IF_ERROR(AddBoundaries());
    AddSent();
    const StepTimes times({plan_, partition_, schedule_, slices_, *messages_, exchange_,
                           exact_exchange_, speeds_.transport});
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

  absl::Status AddExchange() {
    ASSIGN_OR_RETURN(replicas_, ReplicasFrom(all_));
    PlannedExchange& planned = plan_.exchange;
    planned.replicas = replicas_.count;
    planned.way = replicas_.exchange;
    const int carriers = plan_.assumptions.carriers;
    if (carriers < 0 || carriers > planned.replicas) {
      return absl::InvalidArgumentError(absl::StrCat("--carriers: ", carriers, ", want 1 to ",
                                                     planned.replicas, ", the replicas"));
    }
    planned.carriers = carriers == 0 ? planned.replicas : carriers;
    planned.every = replicas_.every;
    planned.fragments = replicas_.fragments;
    planned.overlap = replicas_.overlap;
    ASSIGN_OR_RETURN(const uint64_t all_steps, TrainingSteps(all_));
    const auto steps = static_cast<double>(all_steps / all_.epochs());
    planned.per_step = std::ceil(steps / static_cast<double>(planned.every)) / steps;
    ASSIGN_OR_RETURN(const ExchangeCosts costs,
                     CostsOfExchange(all_, planned.carriers, speeds_, /*exactly=*/false));
    ASSIGN_OR_RETURN(const ExchangeCosts exact,
                     CostsOfExchange(all_, planned.carriers, speeds_, /*exactly=*/true));
    exchange_ = costs.exchange;
    exact_exchange_ = exact.exchange;
    planned.contributions = DirectionOfExchange(replicas_.contributions, costs.contributions.cost);
    planned.average = DirectionOfExchange(replicas_.average, costs.sums.cost);
    const std::vector<std::string> names = SegmentNames(partition_.model, partition_.cuts);
    for (const auto& [segment, does] : replicas_.segments) planned.own[names[segment]] = does;
    for (uint64_t& bytes : plan_.state.stage_memory_bytes) bytes *= plan_.exchange.carried();
    return absl::OkStatus();
  }

  // Takes the outer optimizer to be as fast as the optimizer.
  void AddOuter() {
    if (!replicas_.trains_locally()) return;
    double& seconds = plan_.exchange.outer_seconds;
    for (const PlannedStage& stage : plan_.stages) {
      seconds = std::max(seconds, stage.update_seconds);
    }
  }

  static PlannedDirection DirectionOfExchange(const DirectionSpec& does, const MessageCost& cost) {
    PlannedDirection direction;
    direction.codec = Target(does.codec, does.level);
    direction.level = does.level;
    direction.feedback = does.feedback;
    direction.raw_bytes = cost.raw_bytes;
    direction.wire_bytes = cost.wire_bytes;
    direction.likely_wire_bytes = cost.likely_wire_bytes;
    direction.encode_seconds = cost.encode_seconds;
    direction.decode_seconds = cost.decode_seconds;
    return direction;
  }

  // Returns what a machine keeps of an exchange: the sum of gradients, and `remembered` elements of
  // each replica that it carries.
  int64_t ExchangeMemoryBytes(int64_t parameters, int64_t remembered) const {
    if (replicas_.count == 1 && !replicas_.trains_locally()) return 0;
    return static_cast<int64_t>(sizeof(float)) *
           (parameters * (1 + LocalCopies()) + remembered * plan_.exchange.carried());
  }

  // Returns how many copies of its parameters a machine keeps for local steps: the shared values,
  // the outer momentum, and for each of several replicas its own and what the optimizer remembers.
  int LocalCopies() const {
    if (!replicas_.trains_locally()) return 0;
    const int carried = plan_.exchange.carried();
    const int remembered = std::max(OptimizerBuffers(optimizer_, /*hidden=*/false),
                                    OptimizerBuffers(optimizer_, /*hidden=*/true));
    return 1 + (replicas_.outer.momentum > 0 ? 1 : 0) +
           (carried > 1 ? carried * (1 + remembered) : 0);
  }

  // Adds what each machine sends.
  void AddSent() {
    std::vector<int64_t> of_replica(num_stages());
    for (const PlannedBoundary& boundary : plan_.boundaries) {
      if (boundary.in_memory) continue;
      of_replica[boundary.upstream_stage] += boundary.activations.likely_wire_bytes;
      of_replica[boundary.downstream_stage] += boundary.gradients.likely_wire_bytes;
    }
    for (int carrier = 0; carrier < plan_.exchange.carriers; ++carrier) {
      const auto replicas = static_cast<int64_t>(exchange_.CarriedBy(carrier).size());
      for (int stage = 0; stage < num_stages(); ++stage) {
        SentByMachine& sent = plan_.sent.emplace_back();
        sent.at_cuts = replicas * of_replica[stage];
        if (exchange_.pieces.empty()) continue;
        sent.in_exchange = static_cast<int64_t>(SentBytes(exchange_, stage, carrier));
      }
    }
  }

  absl::Status AddStage(int stage) {
    PlannedStage planned;
    int64_t remembered = 0;  // elements that are kept of each replica
    ASSIGN_OR_RETURN(planned.device, DeviceOf(experiment_, stage));
    for (int chunk = 0; chunk < partition_.placement.chunks_per_stage(); ++chunk) {
      const SegmentRange& segments = partition_.placement.At(stage, chunk);
      for (int segment = segments.first; segment < segments.end; ++segment) {
        planned.parameters += segments_[segment].parameters;
        remembered += segments_[segment].parameters * CopiesOfReplica(replicas_, segment);
        planned.forward_flops += segments_[segment].forward_flops;
        planned.recomputed_flops += segments_[segment].recomputed_flops;
      }
      AddChunk(SegmentBlocks(partition_.model, partition_.cuts, segments), &planned);
    }
    planned.memory_bytes = MemoryBytes(stage) + ExchangeMemoryBytes(planned.parameters, remembered);
    plan_.stages.push_back(std::move(planned));
    return absl::OkStatus();
  }

  // Returns the stage's memory at the moment when it is fullest.
  int64_t MemoryBytes(int stage) const {
    TrainingMemory memory;
    memory.microbatch_samples = plan_.microbatch_size;
    memory.element_bytes = static_cast<int>(SizeOf(compute_));
    memory.optimizer_buffers = OptimizerBuffers(optimizer_, /*hidden=*/false);
    memory.hidden_buffers = OptimizerBuffers(optimizer_, /*hidden=*/true);
    int64_t most = 0;
    const int chunks = partition_.placement.chunks_per_stage();
    for (const std::vector<Held>& state :
         FullestStates(schedule_, stage, num_stages(), static_cast<int>(plan_.microbatches), chunks,
                       slices())) {
      int64_t bytes = 0;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        memory.samples_in_flight =
            (plan_.microbatch_size * state[chunk].in_flight + slices() - 1) / slices();
        memory.samples_cached = slices() > 1 ? memory.samples_in_flight : 0;
        memory.samples_waiting = plan_.microbatch_size * state[chunk].waiting;
        const SegmentRange& segments = partition_.placement.At(stage, chunk);
        for (int segment = segments.first; segment < segments.end; ++segment) {
          bytes += TrainingBytes(segments_[segment], memory);
        }
      }
      most = std::max(most, bytes);
    }
    return most;
  }

  void AddChunk(const BlockRange& blocks, PlannedStage* stage) const {
    const auto samples = static_cast<double>(plan_.microbatch_size);
    PlannedChunk chunk;
    chunk.first_block = partition_.model.blocks[blocks.first].name;
    chunk.last_block = partition_.model.blocks[blocks.last - 1].name;
    for (int block = blocks.first; block < blocks.last; ++block) {
      const BlockSeconds& seconds = speeds_.blocks[block];
      const bool runs_again =
          recompute_ == Recompute::kBlocks && WorthRecomputing(partition_.model.blocks[block]);
      const double forward = samples * seconds.forward + seconds.pass;
      const double backward = samples * seconds.backward + 2 * seconds.pass;
      chunk.forward_seconds += forward;
      chunk.backward_seconds += backward + (runs_again ? forward : 0);
      chunk.weight_seconds += backward * WeightShare(block);
      chunk.pass_seconds += seconds.pass;
      stage->update_seconds += seconds.update;
    }
    stage->forward_seconds += chunk.forward_seconds;
    stage->backward_seconds += chunk.backward_seconds;
    stage->chunks.push_back(std::move(chunk));
  }

  // Returns the share of a block's backward pass that computes the gradients of weights, without
  // what is recomputed. It goes by FLOPs; a backward pass takes twice those of a forward pass.
  double WeightShare(int block) const {
    const BlockSpec& spec = partition_.model.blocks[block];
    const double flops = 2 * ForwardFlops(spec);
    return flops > 0 ? WeightFlops(spec) / flops : 0;
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

  // Sums over the messages of a full step.
  absl::StatusOr<PlannedDirection> Direction(int cut, bool gradient,
                                             const DirectionSpec& does) const {
    PlannedDirection direction;
    direction.codec = Target(does.codec, does.level);
    direction.level = does.level;
    direction.feedback = does.feedback;
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
      direction.raw_bytes += message.raw_bytes;
      direction.wire_bytes += message.wire_bytes;
      direction.likely_wire_bytes += message.likely_wire_bytes;
      direction.encode_seconds += message.encode_seconds;
      direction.decode_seconds += message.decode_seconds;
    }
    if (cut != tied_cut()) {
      const int64_t sums = plan_.clip_norm > 0 ? messages_->SumBytes(cut, gradient) : 0;
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
  Recompute recompute_ = Recompute::kNone;
  std::vector<SegmentCost> segments_;
  ReplicasSpec replicas_;
  Exchange exchange_, exact_exchange_;
  std::optional<MessageCosts> messages_;
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
