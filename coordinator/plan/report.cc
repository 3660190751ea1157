#include "coordinator/plan/report.h"

#include "compress/codecs/plugin.h"

namespace thinwire {
namespace {

void FillStage(const PlannedStage& stage, uint64_t state_bytes, StageNeed* need) {
  need->set_first_block(stage.chunks.front().first_block);
  need->set_last_block(stage.chunks.back().last_block);
  need->set_device(stage.device);
  need->set_parameters(static_cast<uint64_t>(stage.parameters));
  need->set_forward_flops(stage.forward_flops);
  need->set_memory_bytes(static_cast<uint64_t>(stage.memory_bytes));
  need->set_state_bytes(state_bytes);
  need->set_forward_seconds(stage.forward_seconds);
  need->set_backward_seconds(stage.backward_seconds);
  need->set_update_seconds(stage.update_seconds);
}

void FillDirection(const PlannedDirection& direction, DirectionNeed* need) {
  need->set_codec(CodecText(direction.codec));
  need->set_feedback(direction.feedback.ToString());
  need->set_raw_bytes(static_cast<uint64_t>(direction.raw_bytes));
  need->set_most_wire_bytes(static_cast<uint64_t>(direction.wire_bytes));
  need->set_wire_bytes(static_cast<uint64_t>(direction.likely_wire_bytes));
  need->set_encode_seconds(direction.encode_seconds);
  need->set_decode_seconds(direction.decode_seconds);
  if (direction.break_even_bits_per_second > 0) {
    need->set_break_even_bits_per_second(direction.break_even_bits_per_second);
  }
}

void FillBoundary(const PlannedBoundary& boundary, BoundaryNeed* need) {
  need->set_name(boundary.name);
  need->set_upstream_stage(static_cast<uint32_t>(boundary.upstream_stage));
  need->set_downstream_stage(static_cast<uint32_t>(boundary.downstream_stage));
  need->set_in_memory(boundary.in_memory);
  need->set_elements(static_cast<uint64_t>(boundary.elements));
  FillDirection(boundary.activations, need->mutable_activations());
  FillDirection(boundary.gradients, need->mutable_gradients());
}

void FillExchange(const Plan& plan, ExchangeNeed* need) {
  const PlannedExchange& exchange = plan.exchange;
  need->set_replicas(static_cast<uint32_t>(exchange.replicas));
  need->set_carriers(static_cast<uint32_t>(plan.grid.count()));
  need->set_way(Name(exchange.way));
  need->set_every(static_cast<uint32_t>(exchange.every));
  FillDirection(exchange.contributions, need->mutable_contributions());
  if (exchange.way == ReplicaExchange::kReduce) {
    FillDirection(exchange.average, need->mutable_average());
  }
  need->set_machine_wire_bytes(static_cast<uint64_t>(MachineWireBytes(plan)));
}

}  // namespace

PlanReport ReportOf(const std::string& name, const Plan& plan,
                    const std::vector<ChoiceEstimate>& choices,
                    const std::vector<LayoutEstimate>& layouts,
                    const std::vector<std::string>& left_out,
                    const std::optional<SelectedStages>& selected) {
  PlanReport report;
  report.set_name(name);
  report.set_model(plan.model);
  report.set_batch_size(static_cast<uint32_t>(plan.batch_size));
  report.set_microbatches(static_cast<uint32_t>(plan.microbatches));
  report.set_schedule(plan.schedule);
  report.set_precision(plan.precision);
  report.set_batch_norm(plan.batch_norm);
  PlanAssumed* assumed = report.mutable_assumed();
  assumed->set_nic(Name(plan.assumptions.nic));
  assumed->set_rtt_ms(plan.assumptions.rtt_ms);
  assumed->set_cores(static_cast<uint32_t>(plan.assumptions.cores));
  assumed->set_compute(plan.compute_source);
  assumed->set_codecs(plan.codec_source);
  assumed->set_message_us(1e6 * plan.transport.seconds_per_message);
  assumed->set_message_ns_per_byte(1e9 * plan.transport.seconds_per_byte);
  assumed->set_layer_us(1e6 * plan.layer_seconds);
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    FillStage(plan.stages[i], plan.state.stage_memory_bytes[i], report.add_stages());
  }
  for (const PlannedBoundary& boundary : plan.boundaries) {
    FillBoundary(boundary, report.add_boundaries());
  }
  if (plan.sums) FillBoundary(*plan.sums, report.add_boundaries());
  report.set_parts(static_cast<uint32_t>(plan.parts));
  report.set_carriers(static_cast<uint32_t>(plan.grid.count()));
  if (plan.exchange.replicas > 1) FillExchange(plan, report.mutable_exchange());
  report.set_compute_seconds(plan.compute_seconds);
  *report.mutable_steps() = {plan.steps.begin(), plan.steps.end()};
  *report.mutable_choices() = {choices.begin(), choices.end()};
  *report.mutable_layouts() = {layouts.begin(), layouts.end()};
  if (selected) *report.mutable_selected_stages() = *selected;
  for (const std::string& warning : plan.warnings) report.add_notes(warning);
  for (const std::string& line : left_out) report.add_notes(line);
  return report;
}

}  // namespace thinwire
