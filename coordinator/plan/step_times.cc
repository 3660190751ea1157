#include "coordinator/plan/step_times.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "models/cost.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

// Returns the share of attention in the FLOPs of some segments.
double AttentionShare(const std::vector<SegmentCost>& segments, const SegmentRange& range) {
  double attention = 0, all = 0;
  for (int segment = range.first; segment < range.end; ++segment) {
    attention += segments[segment].attention_flops;
    all += segments[segment].forward_flops;
  }
  return all > 0 ? attention / all : 0;
}

// Takes every microbatch to be as large as the first, so the result is rather too long than too
// short.
Simulation PassesOf(const PlannedStep& step) {
  const Plan& plan = step.plan;
  const std::vector<SegmentCost> segments = SegmentCosts(step.partition.model, step.partition.cuts);
  Simulation simulation;
  simulation.schedule = step.schedule;
  simulation.microbatches = static_cast<int>(plan.microbatches);
  simulation.cores = plan.assumptions.cores;
  simulation.machines = step.sums.machines();
  simulation.link.nic = plan.assumptions.nic;
  simulation.slices = step.slices;
  simulation.exchange.carrier_of = step.exchange.carrier_of;
  const Placement& placement = step.partition.placement;
  simulation.chunks_per_stage = placement.chunks_per_stage();
  for (size_t i = 0; i < placement.chunks.size(); ++i) {
    const PlannedStage& stage = plan.stages[i % plan.stages.size()];
    const PlannedChunk& chunk = stage.chunks[i / plan.stages.size()];
    simulation.chunks.push_back({chunk.forward_seconds, chunk.backward_seconds,
                                 /*update_seconds=*/0, chunk.weight_seconds,
                                 AttentionShare(segments, placement.chunks[i]),
                                 chunk.pass_seconds});
  }
  // A stage updates once; the simulation counts the update at its first chunk.
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    simulation.chunks[i].update_seconds = plan.stages[i].update_seconds;
  }
  simulation.activations.resize(simulation.chunks.size() - 1);
  simulation.gradients.resize(simulation.chunks.size() - 1);
  return simulation;
}

Coded AsPlanned(const PlannedDirection& direction) { return {direction.codec, direction.feedback}; }

Coded Exactly(const PlannedDirection&) { return {}; }

// Returns the time from the first stage's begin of the exchange to the last one's end.
double ExchangeSeconds(const Makespan& makespan) {
  double begin = makespan.seconds, end = 0;
  for (const ExchangeSpan& span : makespan.exchanges) {
    begin = std::min(begin, span.begin_seconds);
    end = std::max(end, span.end_seconds);
  }
  return end - begin;
}

}  // namespace

StepTimes::StepTimes(const PlannedStep& step)
    : step_(step), passes_(PassesOf(step)), compute_(Simulate(passes_)) {}

int StepTimes::slices() const { return std::max(1, static_cast<int>(step_.slices.size())); }

absl::StatusOr<StepEstimate> StepTimes::At(double bits_per_second) const {
  ASSIGN_OR_RETURN(const SharedStep compressed,
                   SharedStepAt(bits_per_second, AsPlanned, step_.exchange));
  ASSIGN_OR_RETURN(const SharedStep uncompressed,
                   SharedStepAt(bits_per_second, Exactly, step_.exact_exchange));
  StepEstimate step;
  if (std::isfinite(bits_per_second)) step.set_bits_per_second(bits_per_second);
  step.set_seconds(compressed.seconds);
  step.set_uncompressed_seconds(uncompressed.seconds);
  step.set_samples_per_second(static_cast<double>(step_.plan.batch_size) / compressed.seconds);
  step.set_bubble_ratio(compressed.bubble_ratio);
  step.set_exchange_seconds(compressed.exchange_seconds);
  step.set_exposed_seconds(compressed.exposed_seconds);
  ASSIGN_OR_RETURN(const double sums_seconds, SumsSeconds(bits_per_second));
  step.set_sums_seconds(sums_seconds);
  return step;
}

LinkRate StepTimes::LinkAt(double bits_per_second) const {
  LinkRate link = passes_.link;
  link.bits_per_second = std::isinf(bits_per_second) ? 0 : bits_per_second * kPayloadShare;
  link.latency_seconds = step_.plan.assumptions.rtt_ms / 2000;
  return link;
}

absl::Status StepTimes::AddSums(const LinkRate& link, const CodedOf& coded_of,
                                std::vector<ChunkCost>* chunks) const {
  if (!step_.plan.sums) return absl::OkStatus();
  const Partition& partition = step_.partition;
  for (size_t i = 0; i < chunks->size(); ++i) {
    const BlockRange blocks =
        SegmentBlocks(partition.model, partition.cuts, partition.placement.chunks[i]);
    for (const bool gradient : {false, true}) {
      const PlannedBoundary& sums = *step_.plan.sums;
      ASSIGN_OR_RETURN(const SumsOfPass pass,
                       step_.sums.OfPass(blocks, gradient,
                                         coded_of(gradient ? sums.gradients : sums.activations)));
      const SumSeconds seconds = step_.sums.Seconds(pass, link, step_.transport);
      ChunkCost& chunk = (*chunks)[i];
      (gradient ? chunk.backward_seconds : chunk.forward_seconds) += seconds.computes;
      (gradient ? chunk.backward_wait_seconds : chunk.forward_wait_seconds) += seconds.waits;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> StepTimes::SumsSeconds(double bits_per_second) const {
  Simulation simulation = passes_;
  RETURN_IF_ERROR(AddSums(LinkAt(bits_per_second), AsPlanned, &simulation.chunks));
  return Simulate(simulation).seconds - ComputeSeconds();
}

absl::StatusOr<StepTimes::SharedStep> StepTimes::SharedStepAt(double bits_per_second,
                                                              const CodedOf& coded_of,
                                                              const Exchange& exchange) const {
  ASSIGN_OR_RETURN(const Makespan with, StepAt(bits_per_second, coded_of, exchange));
  SharedStep step{with.seconds, with.bubble_ratio, 0, 0};
  if (exchange.replicas() == 1) return step;
  ASSIGN_OR_RETURN(const Makespan without, StepAt(bits_per_second, coded_of, passes_.exchange));
  step.exchange_seconds = ExchangeSeconds(with);
  const PlannedExchange& planned = step_.plan.exchange;
  step.exposed_seconds =
      ExposedSeconds(with.seconds, without.seconds, planned.fragments, planned.overlap) +
      planned.outer_seconds;
  step.seconds = without.seconds + planned.per_step * step.exposed_seconds;
  step.bubble_ratio = 1 - (1 - without.bubble_ratio) * without.seconds / step.seconds;
  return step;
}

absl::StatusOr<Makespan> StepTimes::StepAt(double bits_per_second, const CodedOf& coded_of,
                                           const Exchange& exchange) const {
  Simulation simulation = passes_;
  simulation.link = LinkAt(bits_per_second);
  RETURN_IF_ERROR(AddSums(simulation.link, coded_of, &simulation.chunks));
  simulation.transport = step_.transport;
  simulation.exchange = exchange;
  size_t chunk = 0;
  for (size_t cut = 0; cut < step_.partition.cuts.size(); ++cut) {
    if (step_.plan.boundaries[cut].in_memory) continue;
    ASSIGN_OR_RETURN(simulation.activations[chunk],
                     MeanTransfer(static_cast<int>(cut), /*gradient=*/false, coded_of));
    ASSIGN_OR_RETURN(simulation.gradients[chunk],
                     MeanTransfer(static_cast<int>(cut), /*gradient=*/true, coded_of));
    ++chunk;
  }
  Makespan makespan = Simulate(simulation);
  ASSIGN_OR_RETURN(const double behind, SecondsBehindPasses(simulation.link, coded_of));
  makespan.seconds += behind;
  // Layers that wait for sums do not run.
  const double busy_seconds = (1 - compute_.bubble_ratio) * compute_.seconds;
  makespan.bubble_ratio = 1 - busy_seconds / makespan.seconds;
  return makespan;
}

absl::StatusOr<TransferCost> StepTimes::Transfer(int cut, bool gradient, const Coded& coded) const {
  TransferCost sum;
  for (int slice = 0; slice < slices(); ++slice) {
    ASSIGN_OR_RETURN(const MessageCost message, step_.messages.Of({cut, gradient, slice}, coded));
    sum.encode_seconds += message.encode_seconds;
    sum.decode_seconds += message.decode_seconds;
    sum.wire_bytes += static_cast<double>(message.likely_wire_bytes);
  }
  return sum;
}

absl::StatusOr<TransferCost> StepTimes::MeanTransfer(int cut, bool gradient,
                                                     const CodedOf& coded_of) const {
  const bool crosses = !gradient || HasGradients(step_.partition.model, step_.partition.cuts[cut]);
  if (!crosses) return TransferCost();
  const PlannedBoundary& boundary = step_.plan.boundaries[cut];
  const PlannedDirection& direction = gradient ? boundary.gradients : boundary.activations;
  ASSIGN_OR_RETURN(const TransferCost coded, Transfer(cut, gradient, coded_of(direction)));
  ASSIGN_OR_RETURN(const TransferCost exact, Transfer(cut, gradient, {}));
  const double exact_share = static_cast<double>(direction.exact_messages) /
                             static_cast<double>(step_.plan.microbatches * slices());
  return TransferCost{(1 - exact_share) * coded.encode_seconds,
                      (1 - exact_share) * coded.decode_seconds,
                      (1 - exact_share) * coded.wire_bytes + exact_share * exact.wire_bytes};
}

// Both gradients of a tied weight cross at once, and then those of learned bases at all cuts
// together, replica by replica. In the end the sum of squares passes all stages and comes back.
absl::StatusOr<double> StepTimes::SecondsBehindPasses(const LinkRate& link,
                                                      const CodedOf& coded_of) const {
  ASSIGN_OR_RETURN(const double tied_seconds, TiedSeconds(link, coded_of));
  int64_t basis_bytes = 0;
  int crossings = 0;
  for (int cut = 0; cut < static_cast<int>(step_.partition.cuts.size()); ++cut) {
    if (step_.plan.boundaries[cut].in_memory) continue;
    basis_bytes = std::max(basis_bytes, step_.messages.BasisBytes(cut, /*gradient=*/false));
    crossings += HasGradients(step_.partition.model, step_.partition.cuts[cut]);
  }
  const double basis_seconds = basis_bytes > 0 ? Alone(basis_bytes, link) : 0;
  const double seconds = step_.plan.exchange.carried() * (tied_seconds + basis_seconds);
  if (step_.plan.clip_norm == 0 || crossings == 0) return seconds;
  const double hops = 2.0 * crossings;
  return seconds + hops * Alone(step_.messages.SumBytes(/*cut=*/0, /*gradient=*/false), link);
}

absl::StatusOr<double> StepTimes::TiedSeconds(const LinkRate& link, const CodedOf& coded_of) const {
  const std::vector<PlannedBoundary>& boundaries = step_.plan.boundaries;
  const int tied_cut = static_cast<int>(step_.partition.cuts.size());
  double seconds = 0;
  if (static_cast<int>(boundaries.size()) == tied_cut || boundaries.back().in_memory)
    return seconds;
  for (const bool gradient : {false, true}) {
    const PlannedDirection& direction =
        gradient ? boundaries.back().gradients : boundaries.back().activations;
    ASSIGN_OR_RETURN(
        const MessageCost message,
        step_.messages.Of({tied_cut, gradient, /*microbatch=*/0}, coded_of(direction)));
    seconds = std::max(seconds, message.encode_seconds + message.decode_seconds +
                                    Alone(message.likely_wire_bytes, link));
  }
  return seconds;
}

double StepTimes::Alone(int64_t bytes, const LinkRate& link) const {
  const auto amount = static_cast<double>(bytes);
  const double crosses = link.bits_per_second > 0 ? 8 * amount / link.bits_per_second : 0;
  return link.latency_seconds + 2 * step_.transport.seconds_per_message +
         std::max(crosses, amount * step_.transport.seconds_per_byte);
}

}  // namespace thinwire
