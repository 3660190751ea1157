#include "coordinator/plan/plan.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/feedback/direction_spec.h"
#include "config/devices.h"
#include "config/specs.h"
#include "coordinator/plan/break_even.h"
#include "coordinator/plan/message_costs.h"
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

// Within these bounds all sums of a simulation are finite numbers.
constexpr double kLeastLinkRate = 1, kMostLinkRate = 1e18;  // bits per second
constexpr double kMostMilliseconds = 1e12;

class Planner {
 public:
  Planner(const Experiment& experiment, const PlanAssumptions& assumptions, const Speeds& speeds)
      : experiment_(experiment), speeds_(speeds) {
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
    plan_.batch_size = experiment_.data().batch_size();
    plan_.microbatches = experiment_.pipeline().microbatches();
    plan_.microbatch_size = (plan_.batch_size + plan_.microbatches - 1) / plan_.microbatches;
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
    for (const BlockSpec& block : partition_.model.blocks) {
      plan_.batch_norm = plan_.batch_norm || HasBatchNorm(block.layers);
    }
    for (int stage = 0; stage < num_stages(); ++stage) RETURN_IF_ERROR(AddStage(stage));
    RETURN_IF_ERROR(AddBoundaries());
    for (const double rate : plan_.assumptions.bits_per_second) RETURN_IF_ERROR(AddStep(rate));
    return plan_;
  }

 private:
  int tied_cut() const { return static_cast<int>(partition_.cuts.size()); }
  int num_stages() const { return partition_.placement.stages; }
  int slices() const { return std::max(1, static_cast<int>(slices_.size())); }

  absl::Status AddStage(int stage) {
    PlannedStage planned;
    ASSIGN_OR_RETURN(planned.device, DeviceOf(experiment_, stage));
    for (int chunk = 0; chunk < partition_.placement.chunks_per_stage(); ++chunk) {
      const SegmentRange& segments = partition_.placement.At(stage, chunk);
      for (int segment = segments.first; segment < segments.end; ++segment) {
        planned.parameters += segments_[segment].parameters;
        planned.forward_flops += segments_[segment].forward_flops;
        planned.recomputed_flops += segments_[segment].recomputed_flops;
      }
      AddChunk(SegmentBlocks(partition_.model, partition_.cuts, segments), &planned);
    }
    planned.memory_bytes = MemoryBytes(stage);
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

  // Returns the share of attention in the FLOPs of a chunk.
  double AttentionShare(const SegmentRange& chunk) const {
    double attention = 0, all = 0;
    for (int segment = chunk.first; segment < chunk.end; ++segment) {
      attention += segments_[segment].attention_flops;
      all += segments_[segment].forward_flops;
    }
    return all > 0 ? attention / all : 0;
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

  using CodedOf = std::function<Coded(const PlannedDirection&)>;

  // Returns the cost of a microbatch's message, or of all its slices together.
  absl::StatusOr<TransferCost> Transfer(int cut, bool gradient, const Coded& coded) const {
    TransferCost sum;
    for (int slice = 0; slice < slices(); ++slice) {
      ASSIGN_OR_RETURN(const MessageCost message, messages_->Of({cut, gradient, slice}, coded));
      sum.encode_seconds += message.encode_seconds;
      sum.decode_seconds += message.decode_seconds;
      sum.wire_bytes += static_cast<double>(message.likely_wire_bytes);
    }
    return sum;
  }

  // Simulates a step. Takes every microbatch to be as large as the first, so the result is rather
  // too long than too short.
  absl::StatusOr<Makespan> StepAt(double bits_per_second, const CodedOf& coded_of) const {
    Simulation simulation;
    simulation.schedule = schedule_;
    simulation.microbatches = static_cast<int>(plan_.microbatches);
    simulation.cores = plan_.assumptions.cores;
    simulation.link.bits_per_second =
        std::isinf(bits_per_second) ? 0 : bits_per_second * kPayloadShare;
    simulation.link.latency_seconds = plan_.assumptions.rtt_ms / 2000;
    simulation.link.nic = plan_.assumptions.nic;
    simulation.transport = speeds_.transport;
    simulation.slices = slices_;
    simulation.chunks_per_stage = partition_.placement.chunks_per_stage();
    for (size_t i = 0; i < partition_.placement.chunks.size(); ++i) {
      const PlannedStage& stage = plan_.stages[i % plan_.stages.size()];
      const PlannedChunk& chunk = stage.chunks[i / plan_.stages.size()];
      simulation.chunks.push_back({chunk.forward_seconds, chunk.backward_seconds,
                                   /*update_seconds=*/0, chunk.weight_seconds,
                                   AttentionShare(partition_.placement.chunks[i]),
                                   chunk.pass_seconds});
    }
    // A stage updates once; the simulation counts the update at its first chunk.
    for (size_t i = 0; i < plan_.stages.size(); ++i) {
      simulation.chunks[i].update_seconds = plan_.stages[i].update_seconds;
    }
    for (size_t cut = 0; cut < partition_.cuts.size(); ++cut) {
      const PlannedBoundary& boundary = plan_.boundaries[cut];
      if (boundary.in_memory) continue;
      for (const bool gradient : {false, true}) {
        const PlannedDirection& direction = gradient ? boundary.gradients : boundary.activations;
        ASSIGN_OR_RETURN(const TransferCost coded,
                         Transfer(static_cast<int>(cut), gradient, coded_of(direction)));
        ASSIGN_OR_RETURN(const TransferCost exact, Transfer(static_cast<int>(cut), gradient, {}));
        // The simulator has one cost for all messages of a direction, so it gets their mean.
        const double exact_share =
            static_cast<double>(direction.exact_messages) / (plan_.microbatches * slices());
        (gradient ? simulation.gradients : simulation.activations)
            .push_back({(1 - exact_share) * coded.encode_seconds,
                        (1 - exact_share) * coded.decode_seconds,
                        (1 - exact_share) * coded.wire_bytes + exact_share * exact.wire_bytes});
      }
    }
    Makespan makespan = Simulate(simulation);
    ASSIGN_OR_RETURN(const double behind, SecondsBehindPasses(simulation.link, coded_of));
    const double busy_seconds = (1 - makespan.bubble_ratio) * makespan.seconds;
    makespan.seconds += behind;
    if (behind > 0) makespan.bubble_ratio = 1 - busy_seconds / makespan.seconds;
    return makespan;
  }

  // Returns the seconds of a step between its last backward pass and its update. Both gradients of
  // a tied weight cross at once; then those of learned bases at all cuts together; then the sum of
  // squares passes all stages and comes back.
  absl::StatusOr<double> SecondsBehindPasses(const LinkRate& link, const CodedOf& coded_of) const {
    const TransportCost& transport = speeds_.transport;
    const auto transfer = [&](int64_t bytes) {
      const auto amount = static_cast<double>(bytes);
      const double crosses = link.bits_per_second > 0 ? 8 * amount / link.bits_per_second : 0;
      return link.latency_seconds + 2 * transport.seconds_per_message +
             std::max(crosses, amount * transport.seconds_per_byte);
    };
    double tied_seconds = 0;
    for (const bool gradient : {false, true}) {
      if (!tied_ || num_stages() == 1) break;
      const PlannedBoundary& boundary = plan_.boundaries.back();
      ASSIGN_OR_RETURN(
          const MessageCost message,
          messages_->Of({tied_cut(), gradient, /*microbatch=*/0},
                        coded_of(gradient ? boundary.gradients : boundary.activations)));
      tied_seconds = std::max(tied_seconds, message.encode_seconds + message.decode_seconds +
                                                transfer(message.likely_wire_bytes));
    }
    int64_t basis_bytes = 0;
    for (int cut = 0; cut < tied_cut(); ++cut) {
      if (plan_.boundaries[cut].in_memory) continue;
      basis_bytes = std::max(basis_bytes, messages_->BasisBytes(cut, /*gradient=*/false));
    }
    const double shared_seconds = tied_seconds + (basis_bytes > 0 ? transfer(basis_bytes) : 0);
    if (plan_.clip_norm == 0) return shared_seconds;
    int crossings = 0;
    for (int cut = 0; cut < tied_cut(); ++cut) crossings += !plan_.boundaries[cut].in_memory;
    const double hops = 2.0 * crossings;
    return shared_seconds + hops * transfer(messages_->SumBytes(/*cut=*/0, /*gradient=*/false));
  }

  absl::Status AddStep(double bits_per_second) {
    ASSIGN_OR_RETURN(const Makespan compressed,
                     StepAt(bits_per_second, [](const PlannedDirection& d) {
                       return Coded{d.codec, d.feedback};
                     }));
    ASSIGN_OR_RETURN(const Makespan uncompressed,
                     StepAt(bits_per_second, [](const PlannedDirection&) { return Coded(); }));
    StepEstimate& step = plan_.steps.emplace_back();
    if (std::isfinite(bits_per_second)) step.set_bits_per_second(bits_per_second);
    step.set_seconds(compressed.seconds);
    step.set_uncompressed_seconds(uncompressed.seconds);
    step.set_samples_per_second(static_cast<double>(plan_.batch_size) / compressed.seconds);
    step.set_bubble_ratio(compressed.bubble_ratio);
    return absl::OkStatus();
  }

  const Experiment& experiment_;
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
  std::optional<MessageCosts> messages_;
};

}  // namespace

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
  return Planner(experiment, assumptions, speeds).Make();
}

int64_t StepWireBytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlannedBoundary& boundary : plan.boundaries) {
    if (boundary.in_memory) continue;
    bytes += boundary.activations.likely_wire_bytes + boundary.gradients.likely_wire_bytes;
  }
  return bytes;
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
