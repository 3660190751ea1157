#include "stage_server/run_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/codecs/plugin.h"
#include "config/specs.h"
#include "models/parts.h"
#include "stage_server/stash/stash_counts.h"

namespace thinwire {
namespace {

const char* NameOf(Direction direction) {
  return direction == DIRECTION_ACTIVATION ? "activation" : "gradient";
}

void FillErrors(const MeasuredErrors& sums, BoundaryReport* report) {
  report->set_measured_messages(sums.messages);
  report->set_coded_messages(sums.coded_messages);
  if (sums.messages == 0) return;
  const auto messages = static_cast<double>(sums.messages);
  report->set_relative_error(sums.relative_error / messages);
  report->set_cosine(sums.cosine / messages);
  report->set_nonzero_fraction(sums.nonzero_fraction / messages);
  if (sums.coded_messages == 0) return;
  const auto coded = static_cast<double>(sums.coded_messages);
  report->set_codec_relative_error(sums.codec.relative_error / coded);
  report->set_relative_residual(sums.codec.relative_residual / coded);
}

void FillStep(const StepStatistics& step, StepTraffic* report) {
  report->set_step(step.step);
  report->set_messages(step.sent.messages);
  report->set_raw_bytes(step.sent.raw_bytes);
  report->set_wire_bytes(step.sent.wire_bytes);
  if (step.errors.messages > 0) {
    report->set_relative_error(step.errors.relative_error /
                               static_cast<double>(step.errors.messages));
  }
  if (step.level) report->set_level(*step.level);
}

// Fills in what the ends count; the counts of the other end are 0.
void FillCounts(const BoundaryStatistics& s, BoundaryReport* report) {
  report->set_messages(s.train.messages);
  report->set_elements(s.train.elements);
  report->set_raw_bytes(s.train.raw_bytes);
  report->set_payload_bytes(s.train.payload_bytes);
  report->set_wire_bytes(s.train.wire_bytes);
  report->set_all_wire_bytes(s.train.wire_bytes + s.evaluate.wire_bytes);
  report->set_encode_seconds(s.encode.sum());
  report->set_encode_cpu_seconds(s.encode_cpu_seconds);
  report->set_decode_seconds(s.decode.sum());
  report->set_decode_cpu_seconds(s.decode_cpu_seconds);
  if (s.level) report->set_level(*s.level);
  FillErrors(s.errors, report);
}

void FillSteps(const std::vector<StepStatistics>& steps, BoundaryReport* report) {
  for (const StepStatistics& step : steps) FillStep(step, report->add_steps());
}

// The ends of one direction of a cut, which count together: those to all machines of a stage.
struct EndsOfOne {
  std::vector<BoundarySender*> senders;  // either these
  std::vector<BoundaryReceiver*> receivers;

  bool are_senders() const { return !senders.empty(); }
  const BoundarySpec& spec() const {
    return are_senders() ? senders.front()->spec() : receivers.front()->spec();
  }
  BoundaryStatistics statistics() const {
    BoundaryStatistics all;
    for (const BoundarySender* sender : senders) all += sender->statistics();
    for (const BoundaryReceiver* receiver : receivers) all += receiver->statistics();
    return all;
  }
};

void FillSenders(const EndsOfOne& ends, uint64_t last_step, BoundaryReport* report) {
  report->set_sender(true);
  uint64_t socket_bytes = 0;
  std::map<uint64_t, StepStatistics> steps;
  for (BoundarySender* sender : ends.senders) {
    socket_bytes += sender->SocketBytesAcked();
    for (const StepStatistics& step : sender->TakeSteps(last_step)) {
      const auto [place, is_new] = steps.emplace(step.step, step);
      if (!is_new) place->second += step;
    }
  }
  report->set_socket_bytes(socket_bytes);
  for (const auto& [number, step] : steps) FillStep(step, report->add_steps());
}

// Spells out the general codec of contributions or of sums, then those of segments that have
// others.
std::string CodecsOfExchanged(const StageSpec& spec, bool is_sum) {
  const ReplicasSpec& replicas = spec.replicas;
  const auto spelled = [is_sum](const DirectionSpec& contributions, const DirectionSpec& average) {
    return CodecText((is_sum ? average : contributions).codec);
  };
  const std::string general = spelled(replicas.contributions, replicas.average);
  const std::vector<std::string> names = SegmentNames(spec.model, spec.cuts);
  std::string text = general;
  for (const auto& [segment, does] : replicas.segments) {
    const std::string own = spelled(does.contributions, does.average);
    if (own != general) absl::StrAppend(&text, "; ", names[segment], ": ", own);
  }
  return text;
}

// Fills in contributions or sums of what replicas exchange, both ends of which are here.
void FillExchanged(const StageSpec& spec, Phase phase, uint64_t last_step, ExchangeCounts* counts,
                   BoundaryReport* report) {
  const bool is_sum = phase == PHASE_AVERAGE;
  report->set_codec(CodecsOfExchanged(spec, is_sum));
  report->set_feedback(
      (is_sum ? spec.replicas.average : spec.replicas.contributions).feedback.ToString());
  report->set_sender(true);
  FillCounts(counts->Of(phase).all(), report);
  FillSteps(counts->Of(phase).TakeSteps(last_step), report);
}

static_assert(static_cast<int>(Slice::Thread::kExecutor) == TraceSlice::EXECUTOR &&
              static_cast<int>(Slice::Thread::kEncoder) == TraceSlice::ENCODER &&
              static_cast<int>(Slice::Thread::kDecoder) == TraceSlice::DECODER);

void FillSlice(const Slice& slice, TraceSlice* report) {
  report->set_name(slice.name);
  report->set_thread(static_cast<TraceSlice::Thread>(slice.thread));
  report->set_step(slice.step);
  if (slice.microbatch != Slice::kNone) {
    report->set_microbatch(static_cast<uint32_t>(slice.microbatch));
  }
  if (slice.cut != Slice::kNone) report->set_cut(static_cast<uint32_t>(slice.cut));
  if (slice.segment != Slice::kNone) report->set_segment(static_cast<uint32_t>(slice.segment));
  report->set_gradient(slice.direction == DIRECTION_GRADIENT);
  report->set_begin(slice.begin.nanoseconds());
  report->set_end(slice.end.nanoseconds());
  if (slice.ready > SteadyTime()) report->set_ready(slice.ready.nanoseconds());
  report->set_core_wait(std::llround(1e9 * slice.core_wait_seconds));
  report->set_wire_bytes(slice.wire_bytes);
}

// Fills in one direction of the sums over parts, whose messages are counted where they are sent.
void FillSums(const SumsSpec& sums, Direction direction, uint64_t last_step, MessageCounts* counts,
              BoundaryReport* report) {
  const bool is_gradient = direction == DIRECTION_GRADIENT;
  report->set_boundary(kSums);
  report->set_gradient(is_gradient);
  report->set_codec(CodecText((is_gradient ? sums.gradients : sums.activations).codec));
  report->set_feedback(FeedbackSpec().ToString());
  report->set_sender(true);
  FillCounts(counts->all(), report);
  FillSteps(counts->TakeSteps(last_step), report);
}

// Fills in the stash, of which nothing leaves the stage.
void FillStash(const StageSpec& spec, const BoundaryStatistics& counts, BoundaryReport* report) {
  report->set_boundary(kStash);
  report->set_codec(CodecText(spec.stash->codec));
  report->set_feedback(FeedbackSpec().ToString());
  report->set_sender(true);
  FillCounts(counts, report);
}

// Returns the ends whose messages count: of carriers of a replica's parts, which send the same at
// cuts, those of the first one.
std::vector<EndsOfOne> CountedEnds(const LocalStage& stage) {
  std::vector<EndsOfOne> all;
  if (stage.spec().place() > 0) return all;
  for (const LocalStage::End& end : stage.ends()) {
    const BoundarySpec& spec = end.sender ? end.sender->spec() : end.receiver->spec();
    auto place = std::find_if(all.begin(), all.end(), [&](const EndsOfOne& one) {
      return one.spec().cut == spec.cut && one.spec().direction == spec.direction &&
             one.are_senders() == (end.sender != nullptr);
    });
    if (place == all.end()) place = all.insert(all.end(), EndsOfOne());
    if (end.sender != nullptr) place->senders.push_back(end.sender);
    if (end.receiver != nullptr) place->receivers.push_back(end.receiver);
  }
  return all;
}

// Adds the waits at neighbours and at the other copy of a tied weight: to send what flows away from
// this stage, and to receive what comes.
void AddWaits(const StageSpec& spec, StageSnapshot* snapshot) {
  std::set<std::pair<int, Direction>> told;
  for (const NeighbourEnd& neighbour : NeighbourEnds(spec)) {
    const CutEndSpec& end = neighbour.end;
    if (!told.emplace(end.cut, end.sends).second) continue;  // of another machine there
    const ActivitySeconds::Waits waits = snapshot->activity.waits[end.cut];
    const std::string cut = spec.CutName(end.cut);
    snapshot->waits.push_back({cut, NameOf(end.sends), "send", waits.send});
    snapshot->waits.push_back({cut, NameOf(end.receives()), "receive", waits.receive});
  }
}

}  // namespace

StageReport ReportOf(const LocalStage& stage, const Executor& executor, const Backend& backend,
                     uint64_t last_step) {
  StageReport report;
  report.set_stage(stage.spec().stage);
  report.set_step(executor.last_step());
  const ActivitySeconds seconds = executor.activity();
  for (const auto& [activity, spent] : ByName(seconds)) {
    (*report.mutable_activity_seconds())[activity] = spent;
  }
  for (const auto& [number, segment] : seconds.segments) {
    SegmentSeconds* const of_segment = report.add_segments();
    of_segment->set_segment(static_cast<uint32_t>(number));
    of_segment->set_forward(segment.forward);
    of_segment->set_backward(segment.backward);
    of_segment->set_optimizer(segment.optimizer);
  }
  double encode = 0, decode = 0;
  for (const EndsOfOne& ends : CountedEnds(stage)) {
    const BoundarySpec& spec = ends.spec();
    BoundaryReport* boundary = report.add_boundaries();
    boundary->set_boundary(spec.name);
    boundary->set_gradient(spec.direction == DIRECTION_GRADIENT);
    boundary->set_codec(CodecText(spec.codec));
    boundary->set_feedback(spec.feedback.ToString());
    FillCounts(ends.statistics(), boundary);
    if (ends.are_senders()) FillSenders(ends, last_step, boundary);
    encode += boundary->encode_seconds();
    decode += boundary->decode_seconds();
  }
  if (SumExchange* const sums = stage.sums()) {
    for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      BoundaryReport* const boundary = report.add_boundaries();
      FillSums(stage.spec().sums, direction, last_step, &sums->counts(direction), boundary);
      encode += boundary->encode_seconds();
      decode += boundary->decode_seconds();
    }
  }
  if (ReplicaAverager* const averager = stage.averager()) {
    const StageSpec& spec = stage.spec();
    ExchangeCounts& counts = averager->counts();
    FillExchanged(spec, PHASE_CONTRIBUTION, last_step, &counts, report.mutable_contributions());
    if (spec.replicas.exchange == ReplicaExchange::kReduce) {
      FillExchanged(spec, PHASE_AVERAGE, last_step, &counts, report.mutable_average());
    }
    encode += report.contributions().encode_seconds() + report.average().encode_seconds();
    decode += report.contributions().decode_seconds() + report.average().decode_seconds();
  }
  if (stage.spec().stash) {
    FillStash(stage.spec(), stage.stash().all(), report.mutable_stash());
    (*report.mutable_activity_seconds())[kStash] =
        report.stash().encode_seconds() + report.stash().decode_seconds();
  }
  if (const std::optional<SwapCounts> counts = stage.swap()) {
    SwapReport& swap = *report.mutable_swap();
    swap.set_bytes_out(counts->bytes_out);
    swap.set_bytes_in(counts->bytes_in);
    swap.set_wait_seconds(counts->wait_seconds);
    swap.set_most_bytes(counts->most_bytes);
    (*report.mutable_activity_seconds())[kSwap] = counts->wait_seconds;
  }
  (*report.mutable_activity_seconds())["encode"] = encode;
  (*report.mutable_activity_seconds())["decode"] = decode;
  report.set_device_memory_bytes(backend.device->bytes_in_use());
  if (stage.spec().memory) report.set_peak_memory_bytes(stage.spec().memory->most_bytes());
  return report;
}

TraceReport ReportOf(const StepTrace::Taken& taken) {
  TraceReport report;
  report.set_dropped(taken.dropped);
  for (const Slice& slice : taken.slices) FillSlice(slice, report.add_slices());
  return report;
}

StageSnapshot SnapshotOf(const LocalStage& stage, const Executor& executor,
                         const Backend& backend) {
  StageSnapshot snapshot;
  snapshot.stage = stage.spec().stage;
  snapshot.device = backend.device;
  snapshot.device_model = backend.description.name;
  snapshot.activity = executor.activity();
  AddWaits(stage.spec(), &snapshot);
  for (const EndsOfOne& ends : CountedEnds(stage)) {
    const BoundarySpec& spec = ends.spec();
    snapshot.ends.push_back({spec.name, NameOf(spec.direction), CodecName(spec.codec),
                             Name(spec.feedback.kind), ends.are_senders(), ends.statistics()});
  }
  if (SumExchange* const sums = stage.sums()) {
    snapshot.part_wait_seconds = sums->peers().wait_seconds();
    for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      const bool is_gradient = direction == DIRECTION_GRADIENT;
      const SumsSpec& does = stage.spec().sums;
      const CodecSpec& codec = (is_gradient ? does.gradients : does.activations).codec;
      snapshot.ends.push_back({kSums, NameOf(direction), CodecName(codec),
                               Name(FeedbackKind::kNone), /*is_sender=*/true,
                               sums->counts(direction).all()});
    }
  }
  if (ReplicaAverager* const averager = stage.averager()) {
    snapshot.replicas = stage.spec().replicas.count;
    snapshot.replica_wait_seconds = averager->peers().wait_seconds();
    snapshot.exchanged.push_back({"contribution", averager->counts().Of(PHASE_CONTRIBUTION).all()});
    if (stage.spec().replicas.exchange == ReplicaExchange::kReduce) {
      snapshot.exchanged.push_back({"average", averager->counts().Of(PHASE_AVERAGE).all()});
    }
  }
  if (stage.local() != nullptr) snapshot.drift = stage.local()->drift();
  if (stage.spec().stash) snapshot.stash = stage.stash().all();
  if (stage.spec().memory) snapshot.most_memory_bytes = stage.spec().memory->most_bytes();
  snapshot.swap = stage.swap();
  return snapshot;
}

}  // namespace thinwire
