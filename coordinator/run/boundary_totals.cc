#include "coordinator/run/boundary_totals.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <utility>

namespace thinwire {
namespace {

// Copies the sender's fields. Each end fills its own fields and leaves the other's 0.
void MergeSender(const BoundaryReport& end, DirectionRecord* record) {
  record->set_codec(end.codec().substr(0, end.codec().find('(')));
  record->set_parameters(end.codec());
  record->set_raw_bytes(end.raw_bytes());
  record->set_payload_bytes(end.payload_bytes());
  record->set_wire_bytes(end.wire_bytes());
  record->set_messages(end.messages());
  if (end.elements() > 0) {
    record->set_wire_bits_per_element(8.0 * static_cast<double>(end.wire_bytes()) /
                                      static_cast<double>(end.elements()));
  }
  record->set_encode_seconds(end.encode_seconds());
  record->set_feedback(end.feedback());
  if (end.has_relative_error()) {
    record->set_relative_error(end.relative_error());
    record->set_cosine(end.cosine());
    record->set_nonzero_fraction(end.nonzero_fraction());
  }
  if (end.has_codec_relative_error()) {
    record->set_codec_relative_error(end.codec_relative_error());
    record->set_relative_residual(end.relative_residual());
  }
  record->set_measured_messages(end.measured_messages());
  record->set_coded_messages(end.coded_messages());
  if (end.has_level()) record->set_level(end.level());
  record->set_socket_bytes(end.socket_bytes());
  record->set_all_wire_bytes(end.all_wire_bytes());
}

// Sets `field` of *sum to the mean of both records, weighted by their numbers of messages, which
// `count` names.
void SetMean(const char* field, const char* count, const DirectionRecord& before,
             const DirectionRecord& now, DirectionRecord* sum) {
  const google::protobuf::Descriptor* const fields = DirectionRecord::descriptor();
  const google::protobuf::Reflection* const values = DirectionRecord::GetReflection();
  double total = 0, messages = 0;
  for (const DirectionRecord* record : {&before, &now}) {
    const auto* const mean = fields->FindFieldByName(field);
    if (!values->HasField(*record, mean)) continue;
    const auto weight =
        static_cast<double>(values->GetUInt64(*record, fields->FindFieldByName(count)));
    total += weight * values->GetDouble(*record, mean);
    messages += weight;
  }
  if (messages > 0) values->SetDouble(sum, fields->FindFieldByName(field), total / messages);
}

// Returns the elements of all messages.
double ElementsOf(const DirectionRecord& record) {
  if (record.wire_bits_per_element() <= 0) return 0;
  return std::round(8.0 * static_cast<double>(record.wire_bytes()) /
                    record.wire_bits_per_element());
}

// Returns the sum of what was sent before and since.
DirectionRecord Sum(const DirectionRecord& before, const DirectionRecord& now) {
  DirectionRecord sum = now;
  if (now.codec().empty()) sum = before;  // no report yet
  const double elements = ElementsOf(before) + ElementsOf(now);
  sum.set_raw_bytes(before.raw_bytes() + now.raw_bytes());
  sum.set_payload_bytes(before.payload_bytes() + now.payload_bytes());
  sum.set_wire_bytes(before.wire_bytes() + now.wire_bytes());
  sum.set_messages(before.messages() + now.messages());
  if (elements > 0) {
    sum.set_wire_bits_per_element(8.0 * static_cast<double>(sum.wire_bytes()) / elements);
  }
  sum.set_encode_seconds(before.encode_seconds() + now.encode_seconds());
  sum.set_decode_seconds(before.decode_seconds() + now.decode_seconds());
  sum.set_socket_bytes(before.socket_bytes() + now.socket_bytes());
  sum.set_all_wire_bytes(before.all_wire_bytes() + now.all_wire_bytes());
  SetMean("relative_error", "measured_messages", before, now, &sum);
  SetMean("cosine", "measured_messages", before, now, &sum);
  SetMean("nonzero_fraction", "measured_messages", before, now, &sum);
  SetMean("codec_relative_error", "coded_messages", before, now, &sum);
  SetMean("relative_residual", "coded_messages", before, now, &sum);
  sum.set_measured_messages(before.measured_messages() + now.measured_messages());
  sum.set_coded_messages(before.coded_messages() + now.coded_messages());
  if (!now.has_level() && before.has_level()) sum.set_level(before.level());
  return sum;
}

// Adds what a sender of another carrier counted.
void AddSender(const BoundaryReport& end, DirectionRecord* sum) {
  DirectionRecord of_carrier;
  MergeSender(end, &of_carrier);
  *sum = Sum(*sum, of_carrier);
}

// Adds what one stage counted at both ends.
void AddExchanged(const BoundaryReport& report, DirectionRecord* sum) {
  DirectionRecord of_stage;
  MergeSender(report, &of_stage);
  of_stage.set_decode_seconds(report.decode_seconds());
  *sum = Sum(*sum, of_stage);
}

EpochDirection Difference(const DirectionRecord& before, const DirectionRecord& after) {
  EpochDirection epoch;
  epoch.set_raw_bytes(after.raw_bytes() - before.raw_bytes());
  epoch.set_wire_bytes(after.wire_bytes() - before.wire_bytes());
  epoch.set_messages(after.messages() - before.messages());
  const uint64_t measured = after.measured_messages() - before.measured_messages();
  if (measured > 0) {
    const auto sum = [](const DirectionRecord& r) {
      return r.relative_error() * static_cast<double>(r.measured_messages());
    };
    // The difference of two sums may fall below 0 by rounding.
    epoch.set_relative_error(std::max(0.0, sum(after) - sum(before)) /
                             static_cast<double>(measured));
  }
  if (after.has_level()) epoch.set_level(after.level());
  return epoch;
}

double Seconds(const StageReport& report, const char* activity) {
  const auto found = report.activity_seconds().find(activity);
  return found == report.activity_seconds().end() ? 0 : found->second;
}

// Adds the compute time of one carrier of a stage.
void AddCompute(const StageReport& report, ComputeRecord* sum) {
  sum->set_forward_seconds(sum->forward_seconds() + Seconds(report, "forward"));
  sum->set_backward_seconds(sum->backward_seconds() + Seconds(report, "backward"));
  sum->set_optimizer_seconds(sum->optimizer_seconds() + Seconds(report, "optimizer"));
  sum->set_core_wait_seconds(sum->core_wait_seconds() + Seconds(report, "core_wait"));
  for (int i = 0; i < report.segments_size(); ++i) {
    const SegmentSeconds& seconds = report.segments(i);
    SegmentRecord* const segment =
        i < sum->segments_size() ? sum->mutable_segments(i) : sum->add_segments();
    segment->set_segment(seconds.segment());
    segment->set_forward_seconds(segment->forward_seconds() + seconds.forward());
    segment->set_backward_seconds(segment->backward_seconds() + seconds.backward());
    segment->set_optimizer_seconds(segment->optimizer_seconds() + seconds.optimizer());
  }
}

// Moves what the report tells of single steps to *traffic.
void TakeSteps(const std::string& boundary, const char* direction, BoundaryReport* report,
               std::vector<TrafficRecord>* traffic) {
  for (const StepTraffic& step : report->steps()) {
    TrafficRecord& record = traffic->emplace_back();
    record.set_step(step.step());
    record.set_boundary(boundary);
    record.set_direction(direction);
    record.set_raw_bytes(step.raw_bytes());
    record.set_wire_bytes(step.wire_bytes());
    record.set_messages(step.messages());
    if (step.has_relative_error()) record.set_relative_error(step.relative_error());
    if (step.has_level()) record.set_level(step.level());
  }
  report->clear_steps();
}

}  // namespace

BoundaryTotals::BoundaryTotals(std::vector<std::string> cuts, const Pipelines& pipelines,
                               std::vector<BoundaryRecord> before)
    : cuts_(std::move(cuts)),
      before_(std::move(before)),
      pipelines_(pipelines),
      latest_(static_cast<size_t>(pipelines.servers())) {}

void BoundaryTotals::Update(const StageReport& report) {
  assert(report.stage() < latest_.size());
  latest_[report.stage()] = report;
}

std::vector<BoundaryRecord> BoundaryTotals::Records() const {
  std::vector<BoundaryRecord> records;
  for (const std::string& cut : cuts_) {
    BoundaryRecord record;
    record.set_name(cut);
    record.mutable_activations();
    record.mutable_gradients();
    std::set<const DirectionRecord*> met;  // directions of which a sender has told
    for (const StageReport& stage : latest_) {
      for (const BoundaryReport& end : stage.boundaries()) {
        if (end.boundary() != cut) continue;
        DirectionRecord* direction =
            end.gradient() ? record.mutable_gradients() : record.mutable_activations();
        if (end.sender() && met.insert(direction).second) {
          MergeSender(end, direction);
        } else if (end.sender()) {
          AddSender(end, direction);
        }
        direction->set_decode_seconds(direction->decode_seconds() + end.decode_seconds());
      }
    }
    for (const BoundaryRecord& before : before_) {
      if (before.name() != cut) continue;
      *record.mutable_activations() = Sum(before.activations(), record.activations());
      *record.mutable_gradients() = Sum(before.gradients(), record.gradients());
    }
    records.push_back(std::move(record));
  }
  return records;
}

ReplicasRecord BoundaryTotals::Replicas(const ReplicasRecord& before) const {
  ReplicasRecord all = before;
  for (const StageReport& stage : latest_) {
    if (!stage.has_contributions()) continue;
    AddExchanged(stage.contributions(), all.mutable_contributions());
    if (stage.has_average()) AddExchanged(stage.average(), all.mutable_average());
  }
  return all;
}

DirectionRecord BoundaryTotals::Stash(const DirectionRecord& before) const {
  DirectionRecord all = before;
  for (const StageReport& stage : latest_) {
    if (stage.has_stash()) AddExchanged(stage.stash(), &all);
  }
  return all;
}

SwapRecord BoundaryTotals::Swap(const SwapRecord& before) const {
  SwapRecord all = before;
  for (const StageReport& stage : latest_) {
    const SwapReport& swap = stage.swap();
    all.set_bytes_out(all.bytes_out() + swap.bytes_out());
    all.set_bytes_in(all.bytes_in() + swap.bytes_in());
    all.set_wait_seconds(all.wait_seconds() + swap.wait_seconds());
    all.set_most_bytes(std::max(all.most_bytes(), swap.most_bytes()));
  }
  return all;
}

double BoundaryTotals::BusySeconds() const {
  double seconds = 0;
  for (const StageReport& stage : latest_) {
    seconds += Seconds(stage, "forward") + Seconds(stage, "backward");
  }
  return seconds;
}

std::vector<ComputeRecord> BoundaryTotals::Compute(uint64_t steps, uint64_t samples) const {
  std::vector<ComputeRecord> records(static_cast<size_t>(pipelines_.stages));
  for (size_t i = 0; i < latest_.size(); ++i) {
    const int stage = pipelines_.PlaceOf(static_cast<int>(i)).stage;
    ComputeRecord& record = records[static_cast<size_t>(stage)];
    record.set_steps(steps);
    record.set_samples(samples);
    AddCompute(latest_[i], &record);
  }
  return records;
}

std::vector<TrafficRecord> TakeTraffic(StageReport* report) {
  std::vector<TrafficRecord> traffic;
  for (BoundaryReport& end : *report->mutable_boundaries()) {
    TakeSteps(end.boundary(), end.gradient() ? "gradients" : "activations", &end, &traffic);
  }
  if (report->has_contributions()) {
    TakeSteps("replicas", "contributions", report->mutable_contributions(), &traffic);
  }
  if (report->has_average()) {
    TakeSteps("replicas", "average", report->mutable_average(), &traffic);
  }
  return traffic;
}

std::vector<EpochBoundary> EpochBoundaries(const std::vector<BoundaryRecord>& before,
                                           const std::vector<BoundaryRecord>& after) {
  std::vector<EpochBoundary> epoch;
  for (const BoundaryRecord& to : after) {
    const auto found = std::find_if(before.begin(), before.end(), [&](const BoundaryRecord& one) {
      return one.name() == to.name();
    });
    const BoundaryRecord from = found == before.end() ? BoundaryRecord() : *found;
    EpochBoundary& boundary = epoch.emplace_back();
    boundary.set_name(to.name());
    *boundary.mutable_activations() = Difference(from.activations(), to.activations());
    *boundary.mutable_gradients() = Difference(from.gradients(), to.gradients());
  }
  return epoch;
}

EpochReplicas EpochOfReplicas(const ReplicasRecord& before, const ReplicasRecord& after) {
  EpochReplicas epoch;
  *epoch.mutable_contributions() = Difference(before.contributions(), after.contributions());
  if (after.has_average()) {
    *epoch.mutable_average() = Difference(before.average(), after.average());
  }
  return epoch;
}

double CompressionRatio(const DirectionRecord& record) {
  if (record.wire_bytes() == 0) return 0;
  return static_cast<double>(record.raw_bytes()) / static_cast<double>(record.wire_bytes());
}

}  // namespace thinwire
