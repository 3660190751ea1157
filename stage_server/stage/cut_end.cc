#include "stage_server/stage/cut_end.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

// Longest time that a sender waits for room in shared memory. The peer's receiver frees room
// without its executor's help, except for an epoch that the executor has not begun.
constexpr absl::Duration kRoomPatience = absl::Seconds(10);

BoundarySpec BoundaryAt(const StageSpec& stage, const CutEndSpec& end, Direction direction,
                        const Backend& backend) {
  BoundarySpec boundary = BoundaryOf(stage, end.cut, direction, backend);
  boundary.peer = end.peer;
  // The same sum goes to all machines of the other stage.
  if (end.carrier > 0 && !stage.replicas.trains_locally()) boundary.counts_norm = false;
  return boundary;
}

// Returns the key of a message that follows the backward passes of a replica, or of all.
MessageKey StepKey(const Work& work, Phase phase) {
  MessageKey key = work.key();
  key.phase = phase;
  key.microbatch = static_cast<uint32_t>(work.replica);
  return key;
}

}  // namespace

std::vector<NeighbourEnd> NeighbourEnds(const StageSpec& stage) {
  std::vector<NeighbourEnd> ends;
  const auto add = [&](int cut, Direction sends, int of, Worker worker = Worker::kOwnThread) {
    for (const int carrier : stage.LinkedWith(of)) {
      const std::string peer = absl::StrCat("stage ", of);
      NeighbourEnd& end = ends.emplace_back(NeighbourEnd{{cut, sends, peer, worker, carrier}, of});
      if (carrier == StageSpec::kSameCarrier) continue;
      absl::StrAppend(&end.end.peer, " of carrier ", carrier);
      end.end.replicas = stage.SharedWith(of, carrier);
    }
  };
  const int before = (stage.stage + stage.stages() - 1) % stage.stages();
  const int behind = (stage.stage + 1) % stage.stages();
  for (int chunk = 0; chunk < stage.chunks(); ++chunk) {
    if (!stage.begins_model(chunk)) add(stage.upstream_cut(chunk), DIRECTION_GRADIENT, before);
    if (!stage.ends_model(chunk)) add(stage.downstream_cut(chunk), DIRECTION_ACTIVATION, behind);
  }
  if (!stage.has_tied_link()) return ends;
  const int other = stage.first() ? stage.stages() - 1 : 0;
  const Direction sends = stage.first() ? DIRECTION_ACTIVATION : DIRECTION_GRADIENT;
  add(stage.tied_cut(), sends, other, Worker::kInline);
  return ends;
}

absl::StatusOr<LinkOptions> LinkOptionsOf(const StageSpec& stage, const CutEndSpec& end,
                                          const Backend& backend) {
  const BoundarySpec received = BoundaryAt(stage, end, end.receives(), backend);
  LinkOptions options;
  options.name = received.name;
  options.peer = received.peer;
  options.run = stage.run;
  options.generation = stage.generation;
  options.secret = stage.link_secret;
  options.cut = received.cut;
  if (end.carrier != StageSpec::kSameCarrier) {
    const bool dials = end.sends == DIRECTION_ACTIVATION;
    options.dialler = static_cast<uint32_t>(dials ? stage.carrier : end.carrier);
  }
  options.receives = received.direction;
  ASSIGN_OR_RETURN(options.max_payload_bytes, MaxPayloadBytes(received));
  options.queue_capacity = received.capacity;
  options.on_frame = [patience = stage.patience] { patience->Advance(); };
  options.stamps_arrivals = stage.trace != nullptr;
  options.host = received.device->host();
  options.copies = backend.copies;
  options.device_slots = backend.device_slots;
  if (backend.copies != nullptr) {
    options.device = received.device;
    options.decodes_on_device = [received](const CodecSpec& codec) {
      return CodesOnDevice(received, codec);
    };
  }
  // Two ends that work on their executors' threads may both send before either receives, so these
  // must not wait for room.
  if (end.worker == Worker::kOwnThread) options.room_patience = kRoomPatience;
  options.on_note = backend.on_note;
  return options;
}

absl::StatusOr<std::unique_ptr<CutEnd>> CutEnd::New(const StageSpec& stage, const CutEndSpec& spec,
                                                    const Backend& backend, Capture* capture,
                                                    std::unique_ptr<Link> link) {
  std::unique_ptr<CutEnd> end(new CutEnd(stage, spec, backend, capture, std::move(link)));
  ASSIGN_OR_RETURN(end->sender_,
                   BoundarySender::New(BoundaryAt(stage, spec, spec.sends, backend),
                                       end->link_.get(), spec.worker, &end->support_));
  ASSIGN_OR_RETURN(end->receiver_,
                   BoundaryReceiver::New(BoundaryAt(stage, spec, spec.receives(), backend),
                                         end->link_.get(), spec.worker, &end->support_));
  return end;
}

absl::Status CutEnd::Send(const Work& work, uint64_t sample_digest, Tensor x,
                          std::vector<uint32_t> document_starts) {
  const BoundarySpec& boundary = sender_->spec();
  MessageKey key = work.key();
  key.direction = boundary.direction;
  key.cut = boundary.cut;
  RETURN_IF_ERROR(capture_->Offer(key, boundary.name, x));
  SequenceStarts starts;
  if (boundary.packs_documents) starts.documents = std::move(document_starts);
  starts.first_position = work.first_position;
  return sender_->Send(key, sample_digest, Compresses(stage_, work, boundary), std::move(x),
                       std::move(starts));
}

absl::StatusOr<BoundaryReceiver::Received> CutEnd::Receive(const Work& work,
                                                           std::optional<uint64_t> sample_digest) {
  BoundaryReceiver::Expected expected;
  expected.key = work.key();
  expected.batch = work.samples;
  expected.compressed = Compresses(stage_, work, receiver_->spec());
  expected.sample_digest = sample_digest;
  return receiver_->Receive(expected, work.deadline);
}

absl::Status CutEnd::AwaitAcknowledgement(const Work& work, uint64_t step) {
  MessageKey key = work.key();
  key.step = step;
  return receiver_->ReceiveAcknowledgement(key, stage_.patience->Deadline());
}

absl::Status CutEnd::AcknowledgeTraining(const Work& work) {
  MessageKey key = work.key();
  key.phase = PHASE_TAKEN;
  return sender_->SendAcknowledgement(key);
}

absl::Status CutEnd::AwaitTaken(const Work& work) {
  MessageKey key = work.key();
  key.phase = PHASE_TAKEN;
  const auto slices = static_cast<uint32_t>(stage_.slices());
  const uint32_t slice = key.microbatch % slices;
  key.microbatch += slices - 1 - 2 * slice;
  return receiver_->ReceiveAcknowledgement(key, stage_.patience->Deadline());
}

absl::Status CutEnd::SendSumOfSquares(const Work& work, double sum) {
  return sender_->SendSumOfSquares(StepKey(work, PHASE_GRADIENT_NORM), sum);
}

absl::StatusOr<double> CutEnd::ReceiveSumOfSquares(const Work& work) {
  return receiver_->ReceiveSumOfSquares(StepKey(work, PHASE_GRADIENT_NORM),
                                        stage_.patience->Deadline());
}

absl::StatusOr<Tensor> CutEnd::SendGradient(const Work& work, const Tensor& gradient) {
  // A copy is sent, since the message may outlive the gradient's values.
  ASSIGN_OR_RETURN(Tensor copy,
                   Tensor::Allocate(backend_.device, gradient.dtype(), gradient.shape()));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(gradient.view(), copy.view())));
  RETURN_IF_ERROR(ToStatus(backend_.device->Finish()));  // another thread may read it
  if (is_tied()) {
    return sender_->SendAndKeep(StepKey(work, PHASE_TRAIN), /*sample_digest=*/0,
                                Compresses(stage_, work, sender_->spec()), std::move(copy));
  }
  RETURN_IF_ERROR(sender_->Send(StepKey(work, PHASE_BASIS), /*sample_digest=*/0,
                                /*compress=*/false, std::move(copy)));
  return gradient;
}

absl::StatusOr<Tensor> CutEnd::ReceiveGradient(const Work& work) {
  const BoundarySpec& boundary = receiver_->spec();
  BoundaryReceiver::Expected expected;
  expected.key = StepKey(work, is_tied() ? PHASE_TRAIN : PHASE_BASIS);
  expected.batch = is_tied() ? boundary.max_batch : boundary.basis[0];
  expected.compressed = is_tied() && Compresses(stage_, work, boundary);
  expected.sample_digest = 0;
  ASSIGN_OR_RETURN(auto received, receiver_->Receive(expected, stage_.patience->Deadline()));
  return std::move(received.tensor);
}

bool CutEnds::Has(int carrier) const {
  return std::any_of(ends_.begin(), ends_.end(),
                     [carrier](const Entry& entry) { return entry.carrier == carrier; });
}

void CutEnds::Add(int carrier, std::unique_ptr<CutEnd> end) {
  const auto behind = std::find_if(ends_.begin(), ends_.end(), [carrier](const Entry& entry) {
    return entry.carrier > carrier;
  });
  ends_.insert(behind, {carrier, std::move(end)});
}

CutEnd& CutEnds::Of(int replica) const {
  if (ends_.size() == 1) return *ends_.front().end;
  return *std::find_if(ends_.begin(), ends_.end(), [replica](const Entry& entry) {
            return entry.end->replicas().has(replica);
          })->end;
}

std::vector<CutEnd*> CutEnds::all() const {
  std::vector<CutEnd*> all;
  for (const Entry& entry : ends_) all.push_back(entry.end.get());
  return all;
}

absl::StatusOr<InnerCut> NewInnerCut(const StageSpec& stage, int cut, const Backend& backend,
                                     Capture* capture) {
  const CutEndSpec up{cut, DIRECTION_ACTIVATION, "this process", Worker::kInline};
  const CutEndSpec down{cut, DIRECTION_GRADIENT, "this process", Worker::kInline};
  ASSIGN_OR_RETURN(const LinkOptions up_options, LinkOptionsOf(stage, up, backend));
  ASSIGN_OR_RETURN(const LinkOptions down_options, LinkOptionsOf(stage, down, backend));
  auto [up_link, down_link] = NewMemoryLinks(up_options, down_options);
  InnerCut inner;
  ASSIGN_OR_RETURN(inner.upstream, CutEnd::New(stage, up, backend, capture, std::move(up_link)));
  ASSIGN_OR_RETURN(inner.downstream,
                   CutEnd::New(stage, down, backend, capture, std::move(down_link)));
  return inner;
}

}  // namespace thinwire
