#include "coordinator/plan/plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compress/direction_spec.h"
#include "compress/feedback/plan.h"
#include "compress/plugin.h"
#include "config/devices.h"
#include "config/specs.h"
#include "coordinator/plan/warnings.h"
#include "coordinator/plan/wire_bytes.h"
#include "models/cost.h"
#include "schedule/simulator.h"

namespace thinwire {
namespace {

constexpr double kLinkRates[] = {10e6, 100e6, 1e9, 10e9, 0};  // bits per second

bool HasBatchNorm(const std::vector<LayerSpec>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    return layer.kind == LayerKind::kBatchNorm || HasBatchNorm(layer.body) ||
           HasBatchNorm(layer.shortcut);
  });
}

// Within these bounds all sums of a simulation are finite numbers.
constexpr double kLeastSpeed = 1e-6, kMostSpeed = 1e12;

// `flag` is the command line's.
absl::Status CheckAssumption(const char* flag, double value, double least) {
  if (value >= least && value <= kMostSpeed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", value, ", want ", least, " to ", kMostSpeed));
}

absl::Status CheckAssumptions(const PlanAssumptions& assumptions) {
  RETURN_IF_ERROR(CheckAssumption("gflops", assumptions.gflops, kLeastSpeed));
  RETURN_IF_ERROR(
      CheckAssumption("codec_gbps", assumptions.codec_gigabytes_per_second, kLeastSpeed));
  return CheckAssumption("latency_ms", assumptions.latency_ms, 0);
}

// What a message is made by.
struct Coding {
  CodecSpec codec;
  FeedbackSpec feedback;
};

// A message of one microbatch, at most.
struct MessageCost {
  int64_t raw_bytes = 0, wire_bytes = 0;
  double codec_seconds = 0;  // to encode, and again to decode
};

class Planner {
 public:
  Planner(const Experiment& experiment, const PlanAssumptions& assumptions)
      : experiment_(experiment) {
    plan_.assumptions = assumptions;
  }

  absl::StatusOr<Plan> Make() {
    RETURN_IF_ERROR(CheckAssumptions(plan_.assumptions));
    ASSIGN_OR_RETURN(partition_, PartitionFrom(experiment_));
    ASSIGN_OR_RETURN(schedule_, ScheduleFrom(experiment_));
    ASSIGN_OR_RETURN(compute_, ComputeFrom(experiment_));
    segments_ = SegmentCosts(partition_.model, partition_.cuts);
    plan_.model = partition_.model.name;
    plan_.batch_size = experiment_.data().batch_size();
    plan_.microbatches = experiment_.pipeline().microbatches();
    plan_.microbatch_size = (plan_.batch_size + plan_.microbatches - 1) / plan_.microbatches;
    plan_.schedule = Name(schedule_);
    plan_.precision = experiment_.precision();
    plan_.deterministic = OpsOptionsFrom(experiment_).deterministic;
    plan_.warmup_epochs = experiment_.compression().warmup_epochs();
    plan_.warmup_steps = experiment_.compression().warmup_steps();
    ASSIGN_OR_RETURN(plan_.state, PlanState(experiment_));
    ASSIGN_OR_RETURN(plan_.warnings, PlanWarnings(experiment_));
    for (const BlockSpec& block : partition_.model.blocks) {
      plan_.batch_norm = plan_.batch_norm || HasBatchNorm(block.layers);
    }
    for (int stage = 0; stage < num_stages(); ++stage) RETURN_IF_ERROR(AddStage(stage));
    RETURN_IF_ERROR(AddBoundaries());
    for (double rate : kLinkRates) RETURN_IF_ERROR(AddStep(rate));
    return plan_;
  }

 private:
  int num_stages() const { return static_cast<int>(partition_.stage_starts.size()); }
  int end_segment(int stage) const {
    return stage + 1 < num_stages() ? partition_.stage_starts[stage + 1]
                                    : static_cast<int>(segments_.size());
  }

  absl::Status AddStage(int stage) {
    const int first = partition_.stage_starts[stage], end = end_segment(stage);
    const auto& blocks = partition_.model.blocks;
    PlannedStage planned;
    ASSIGN_OR_RETURN(planned.device, DeviceOf(experiment_, stage));
    planned.first_block =
        blocks[SegmentBlocks(partition_.model, partition_.cuts, first).first].name;
    planned.last_block =
        blocks[SegmentBlocks(partition_.model, partition_.cuts, end - 1).last - 1].name;
    TrainingMemory memory;
    memory.samples_in_flight =
        plan_.microbatch_size *
        MaxInFlight(schedule_, stage, num_stages(), static_cast<int>(plan_.microbatches));
    memory.element_bytes = static_cast<int>(SizeOf(compute_));
    memory.optimizer_buffers = experiment_.optimizer().momentum() > 0 ? 1 : 0;
    for (int segment = first; segment < end; ++segment) {
      planned.parameters += segments_[segment].parameters;
      planned.forward_flops += segments_[segment].forward_flops;
      planned.memory_bytes += TrainingBytes(segments_[segment], memory);
    }
    plan_.stages.push_back(planned);
    return absl::OkStatus();
  }

  absl::Status AddBoundaries() {
    int stage = 0;
    for (size_t cut = 0; cut < partition_.cuts.size(); ++cut) {
      const std::string& name = partition_.cuts[cut].name;
      PlannedBoundary boundary;
      boundary.name = name;
      boundary.upstream_stage = stage;
      boundary.in_memory = static_cast<int>(cut) + 1 < end_segment(stage);
      if (!boundary.in_memory) ++stage;
      boundary.elements = segments_[cut].boundary_elements;
      for (bool gradient : {false, true}) {
        ASSIGN_OR_RETURN(const DirectionSpec does,
                         DirectionFrom(DirectionOf(experiment_, name, gradient), gradient));
        PlannedDirection& planned = gradient ? boundary.gradients : boundary.activations;
        ASSIGN_OR_RETURN(planned, Direction(cut, does));
      }
      plan_.boundaries.push_back(boundary);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<MessageCost> Message(size_t cut, const Coding& coding, int64_t samples) const {
    const Shape shape = partition_.model.blocks[partition_.cuts[cut].block].out.WithBatch(samples);
    ASSIGN_OR_RETURN(const size_t payload_bytes,
                     CompensatedMaxPayloadBytes(coding.feedback, coding.codec, shape, compute_));
    MessageCost cost;
    cost.raw_bytes = shape.elements() * static_cast<int64_t>(SizeOf(compute_));
    cost.wire_bytes = WireBytes(coding.codec, shape, static_cast<int64_t>(payload_bytes));
    if (!coding.codec.is_exact()) {
      cost.codec_seconds = static_cast<double>(cost.raw_bytes) /
                           (plan_.assumptions.codec_gigabytes_per_second * 1e9);
    }
    return cost;
  }

  // Sums over the microbatches of a full step; their sizes differ by at most one.
  absl::StatusOr<PlannedDirection> Direction(size_t cut, const DirectionSpec& does) const {
    PlannedDirection direction;
    direction.codec = Target(does.codec, does.level);
    direction.level = does.level;
    direction.feedback = does.feedback;
    double codec_seconds = 0;
    for (int64_t m = 0; m < plan_.microbatches; ++m) {
      const int64_t samples = plan_.batch_size / plan_.microbatches +
                              (m < plan_.batch_size % plan_.microbatches ? 1 : 0);
      const bool is_exact = does.epilogue_only &&
                            !InCoolDown(static_cast<int>(cut), static_cast<int>(segments_.size()),
                                        static_cast<int>(plan_.microbatches), static_cast<int>(m));
      direction.exact_messages += is_exact;
      ASSIGN_OR_RETURN(
          const MessageCost message,
          Message(cut, is_exact ? Coding() : Coding{direction.codec, does.feedback}, samples));
      direction.raw_bytes += message.raw_bytes;
      direction.wire_bytes += message.wire_bytes;
      codec_seconds += 2 * message.codec_seconds;
    }
    const int64_t saved_bytes = direction.raw_bytes - direction.wire_bytes;
    if (saved_bytes > 0 && codec_seconds > 0) {
      direction.break_even_bits_per_second = 8.0 * static_cast<double>(saved_bytes) / codec_seconds;
    }
    return direction;
  }

  using CodingOf = std::function<Coding(const PlannedDirection&)>;

  // Of the largest microbatch, so rather too long than too short.
  absl::StatusOr<Makespan> StepAt(double bits_per_second, const CodingOf& coding_of) const {
    Simulation simulation;
    simulation.schedule = schedule_;
    simulation.microbatches = static_cast<int>(plan_.microbatches);
    simulation.link = {bits_per_second, plan_.assumptions.latency_ms / 1000};
    for (const PlannedStage& stage : plan_.stages) {
      const double forward = stage.forward_flops * static_cast<double>(plan_.microbatch_size) /
                             (plan_.assumptions.gflops * 1e9);
      simulation.stages.push_back({forward, 2 * forward, 0});
    }
    for (size_t cut = 0; cut < plan_.boundaries.size(); ++cut) {
      const PlannedBoundary& boundary = plan_.boundaries[cut];
      if (boundary.in_memory) continue;
      for (auto [direction, transfers] : {std::pair(&boundary.activations, &simulation.activations),
                                          std::pair(&boundary.gradients, &simulation.gradients)}) {
        ASSIGN_OR_RETURN(const MessageCost coded,
                         Message(cut, coding_of(*direction), plan_.microbatch_size));
        ASSIGN_OR_RETURN(const MessageCost exact, Message(cut, {}, plan_.microbatch_size));
        // The simulator knows one cost for all messages of a direction: their mean.
        const double exact_share =
            static_cast<double>(direction->exact_messages) / plan_.microbatches;
        const double codec_seconds = (1 - exact_share) * coded.codec_seconds;
        transfers->push_back({codec_seconds, codec_seconds,
                              (1 - exact_share) * static_cast<double>(coded.wire_bytes) +
                                  exact_share * static_cast<double>(exact.wire_bytes)});
      }
    }
    return Simulate(simulation);
  }

  absl::Status AddStep(double bits_per_second) {
    ASSIGN_OR_RETURN(const Makespan compressed,
                     StepAt(bits_per_second, [](const PlannedDirection& d) {
                       return Coding{d.codec, d.feedback};
                     }));
    ASSIGN_OR_RETURN(const Makespan uncompressed,
                     StepAt(bits_per_second, [](const PlannedDirection&) { return Coding(); }));
    plan_.steps.push_back(
        {bits_per_second, compressed.seconds, uncompressed.seconds, compressed.bubble_ratio});
    return absl::OkStatus();
  }

  const Experiment& experiment_;
  Plan plan_;
  Partition partition_;
  ScheduleKind schedule_ = ScheduleKind::kOneForwardOneBackward;
  DType compute_ = DType::kF32;
  std::vector<SegmentCost> segments_;
};

std::string Heading(const Plan& plan) {
  int64_t parameters = 0;
  for (const PlannedStage& stage : plan.stages) parameters += stage.parameters;
  return absl::StrFormat(
      "%s: %d parameters, %d cuts, %d stages; batches of %d in %d microbatches, %s, %s%s\n",
      plan.model, parameters, plan.boundaries.size(), plan.stages.size(), plan.batch_size,
      plan.microbatches, plan.schedule, plan.precision,
      plan.deterministic ? "" : " not deterministic");
}

std::string StageTable(const Plan& plan) {
  std::string text = absl::StrFormat("\n%-6s %-24s %12s %14s %10s  %s\n", "stage", "blocks",
                                     "parameters", "MFLOP/sample", "memory MB", "device");
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const PlannedStage& stage = plan.stages[i];
    const std::string blocks = stage.first_block == stage.last_block
                                   ? stage.first_block
                                   : absl::StrCat(stage.first_block, " to ", stage.last_block);
    absl::StrAppendFormat(&text, "%-6d %-24s %12d %14.2f %10.1f  %s\n", i, blocks, stage.parameters,
                          stage.forward_flops / 1e6, stage.memory_bytes / 1e6, stage.device);
  }
  return text +
         "FLOPs of the forward pass; the backward pass is taken as twice that. Memory: "
         "parameters,\n"
         "gradients, momentum and what is kept for the backward pass, without kernel workspace.\n";
}

std::string DirectionRow(const PlannedBoundary& boundary, const char* name,
                         const PlannedDirection& direction) {
  const double raw = static_cast<double>(direction.raw_bytes);
  const double wire = static_cast<double>(direction.wire_bytes);
  const std::string link =
      boundary.in_memory ? "memory"
                         : absl::StrCat(boundary.upstream_stage, "-", boundary.upstream_stage + 1);
  const std::string break_even =
      direction.break_even_bits_per_second > 0
          ? absl::StrFormat("%.0f", direction.break_even_bits_per_second / 1e6)
          : "-";
  std::string codec = CodecText(direction.codec);
  if (direction.level.kind != LevelKind::kFixed) {
    absl::StrAppend(&codec, ", level ", direction.level.ToString());
  }
  if (direction.exact_messages > 0) {
    absl::StrAppend(&codec, ", ", direction.exact_messages, " messages exact");
  }
  return absl::StrFormat("%-10s %-7s %-10s %10d %10.1f %10.1f %8s %10s  %s\n", boundary.name, link,
                         name, boundary.elements, raw / 1e3, wire / 1e3,
                         absl::StrFormat("%.1f x", raw / wire), break_even, codec);
}

std::string BoundaryTable(const Plan& plan) {
  if (plan.boundaries.empty()) return "";
  std::string text = absl::StrFormat("\n%-10s %-7s %-10s %10s %10s %10s %8s %10s  %s\n", "boundary",
                                     "link", "direction", "elem/sample", "raw kB", "wire kB",
                                     "ratio", "break-even", "codec");
  for (const PlannedBoundary& boundary : plan.boundaries) {
    absl::StrAppend(&text, DirectionRow(boundary, "activation", boundary.activations),
                    DirectionRow(boundary, "gradient", boundary.gradients));
  }
  absl::StrAppendFormat(&text,
                        "Per step. Wire bytes are the most that compressed messages take, headers "
                        "included: topk sends\n"
                        "fewer when it finds zeros or a shorter index. Break-even: the link rate "
                        "in Mbit/s below which\n"
                        "the codec saves time, if it encodes and decodes %g GB/s.\n",
                        plan.assumptions.codec_gigabytes_per_second);
  if (plan.warmup_epochs > 0) {
    absl::StrAppendFormat(&text, "The first %d epochs travel uncompressed.\n", plan.warmup_epochs);
  }
  if (plan.warmup_steps > 0) {
    absl::StrAppendFormat(&text, "The first %d steps travel uncompressed.\n", plan.warmup_steps);
  }
  return text;
}

std::string RateName(double bits_per_second) {
  if (bits_per_second == 0) return "infinite";
  if (bits_per_second >= 1e9) return absl::StrFormat("%g Gbit/s", bits_per_second / 1e9);
  return absl::StrFormat("%g Mbit/s", bits_per_second / 1e6);
}

std::string StepTable(const Plan& plan) {
  std::string text = absl::StrFormat("\n%-12s %12s %16s %10s %12s %8s\n", "link rate", "step ms",
                                     "uncompressed ms", "speed-up", "samples/s", "bubble");
  for (const PlannedStep& step : plan.steps) {
    absl::StrAppendFormat(&text, "%-12s %12.2f %16.2f %10s %12.0f %8s\n",
                          RateName(step.bits_per_second), 1e3 * step.seconds,
                          1e3 * step.uncompressed_seconds,
                          absl::StrFormat("%.2f x", step.uncompressed_seconds / step.seconds),
                          static_cast<double>(plan.batch_size) / step.seconds,
                          absl::StrFormat("%.0f %%", 100 * step.bubble_ratio));
  }
  absl::StrAppendFormat(
      &text,
      "Simulated, if each stage has a machine of its own that computes %g GFLOP/s (--gflops), "
      "codecs\n"
      "take %g GB/s (--codec_gbps) and links have a latency of %g ms (--latency_ms).\n",
      plan.assumptions.gflops, plan.assumptions.codec_gigabytes_per_second,
      plan.assumptions.latency_ms);
  return text;
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const Experiment& experiment, const PlanAssumptions& assumptions) {
  return Planner(experiment, assumptions).Make();
}

std::string FormatPlan(const Plan& plan) {
  std::string text = absl::StrCat(Heading(plan), StageTable(plan), BoundaryTable(plan),
                                  FormatState(plan.state), StepTable(plan));
  if (plan.batch_norm && plan.microbatches > 1) {
    absl::StrAppendFormat(
        &text,
        "\nNote: batch norm normalises each microbatch of %d samples by itself, so what the model\n"
        "learns depends on pipeline.microbatches. Papers' results want 1.\n",
        plan.microbatch_size);
  }
  if (!plan.warnings.empty()) {
    absl::StrAppend(&text, "\n", absl::StrJoin(plan.warnings, "\n"), "\n");
  }
  return text;
}

}  // namespace thinwire
