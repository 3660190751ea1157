#include "stage_server/boundary/sender.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/stopwatch.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

constexpr absl::Duration kAcknowledgementPatience = absl::Seconds(1);

// Names a slice of the trace by the way that its message took.
const char* SliceNameOf(Way way) {
  switch (way) {
    case Way::kMemory:
      return "send";
    case Way::kDeviceSlots:
      return "send device_slots";
    case Way::kDeviceCopies:
      return "send device_copies";
    case Way::kHostCopies:
      return "send host_copies";
    case Way::kSocket:
      return "send socket";
  }
  return "send";
}

Message WithoutTensor(const MessageEncoder::Outgoing& outgoing, const BoundarySpec& spec) {
  Message message;
  message.key = outgoing.key;
  message.dtype = spec.compute;
  message.shape = Shape{0};
  message.sum_of_squares = outgoing.sum_of_squares;
  return message;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BoundarySender>> BoundarySender::New(const BoundarySpec& spec,
                                                                    Link* link, Worker worker,
                                                                    SupportMaps* support) {
  const bool sends_from_device = link->sends_from() == spec.device;
  const LeftOnDevice left = sends_from_device ? LeftOnDevice::kAll : LeftOnDevice::kNone;
  Encoders encoders(spec.replicas);
  for (auto& encoder : encoders) {
    ASSIGN_OR_RETURN(encoder, MessageEncoder::New(spec, support, left));
  }
  // Hands the device memory on to the encoding thread.
  RETURN_IF_ERROR(ToStatus(spec.device->Finish()));
  return std::unique_ptr<BoundarySender>(
      new BoundarySender(spec, link, worker, std::move(encoders)));
}

BoundarySender::BoundarySender(const BoundarySpec& spec, Link* link, Worker worker,
                               Encoders encoders)
    : spec_(spec),
      link_(link),
      thread_(worker == Worker::kOwnThread ? Slice::Thread::kEncoder : Slice::Thread::kExecutor),
      encoders_(std::move(encoders)) {
  if (worker == Worker::kOwnThread) worker_.emplace([this] { WorkerLoop(); });
}

BoundarySender::~BoundarySender() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (worker_) worker_->join();
}

MessageEncoder::Outgoing BoundarySender::OutgoingOf(MessageKey key) const {
  MessageEncoder::Outgoing outgoing;
  outgoing.key = key;
  outgoing.key.direction = spec_.direction;
  outgoing.key.cut = spec_.cut;
  return outgoing;
}

MessageEncoder::Outgoing BoundarySender::OutgoingOf(MessageKey key, uint64_t sample_digest,
                                                    bool compress, Tensor x) const {
  MessageEncoder::Outgoing outgoing = OutgoingOf(key);
  outgoing.sample_digest = sample_digest;
  outgoing.compress = compress;
  outgoing.x = std::move(x);
  outgoing.rows = rows_;
  if (IsTraced(spec_, key)) outgoing.submitted = SteadyTime::Now();
  return outgoing;
}

absl::Status BoundarySender::Send(MessageKey key, uint64_t sample_digest, bool compress, Tensor x,
                                  SequenceStarts starts) {
  MessageEncoder::Outgoing outgoing = OutgoingOf(key, sample_digest, compress, std::move(x));
  outgoing.starts = std::move(starts);
  return Submit(std::move(outgoing));
}

absl::StatusOr<Tensor> BoundarySender::SendAndKeep(MessageKey key, uint64_t sample_digest,
                                                   bool compress, Tensor x) {
  assert(!worker_);
  MessageEncoder::Outgoing outgoing = OutgoingOf(key, sample_digest, compress, std::move(x));
  outgoing.want_received = true;
  return EncodeAndSend(std::move(outgoing));
}

absl::Status BoundarySender::SendAcknowledgement(MessageKey key) { return Submit(OutgoingOf(key)); }

absl::Status BoundarySender::SendSumOfSquares(MessageKey key, double sum) {
  MessageEncoder::Outgoing outgoing = OutgoingOf(key);
  outgoing.sum_of_squares = sum;
  return Submit(std::move(outgoing));
}

absl::Status BoundarySender::Submit(MessageEncoder::Outgoing outgoing) {
  if (!worker_) return EncodeAndSend(std::move(outgoing)).status();
  const std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(status_);
  queue_.push_back(std::move(outgoing));
  changed_.notify_all();
  return absl::OkStatus();
}

void BoundarySender::WorkerLoop() {
  for (;;) {
    MessageEncoder::Outgoing outgoing;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      // The message before has left: AwaitEncoded may be waiting for that.
      encoding_ = false;
      changed_.notify_all();
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      encoding_ = true;
      outgoing = std::move(queue_.front());
      queue_.pop_front();
    }
    const absl::Status status = EncodeAndSend(std::move(outgoing)).status();
    if (!status.ok()) {
      (void)spec_.device->Finish();  // other threads will free the memory used here
      // The peer learns of it at once, the executor with its next Send or Flush.
      link_->Close(status);
      const std::lock_guard<std::mutex> lock(mutex_);
      status_ = status;
      changed_.notify_all();
      return;
    }
  }
}

absl::Status BoundarySender::AwaitEncoded(SteadyTime deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool idle = changed_.wait_until(
      lock, deadline.chrono(), [this] { return !status_.ok() || (queue_.empty() && !encoding_); });
  if (idle) return status_;
  return absl::DeadlineExceededError(
      absl::StrCat("cut ", spec_.name, ": ", queue_.size(), " messages were not encoded in time"));
}

absl::Status BoundarySender::Flush(SteadyTime deadline) {
  RETURN_IF_ERROR(AwaitEncoded(deadline));
  absl::Status flushed;
  // A slow peer is no dead one: the deadline moves for as long as the run advances.
  do {
    flushed = link_->Flush(deadline);
  } while (absl::IsDeadlineExceeded(flushed) &&
           spec_.patience->Extend(SteadyTime::Now(), &deadline));
  RETURN_IF_ERROR(flushed);
  AwaitAcknowledgement(std::min(deadline, SteadyTime::Now() + kAcknowledgementPatience));
  return absl::OkStatus();
}

// gRPC does not tell when bytes have left, but the kernel does. Without a TCP socket
// SocketBytesAcked is 0 and nothing is waited for.
void BoundarySender::AwaitAcknowledgement(SteadyTime deadline) const {
  const BoundaryStatistics sent = statistics();
  const uint64_t wire_bytes = sent.train.wire_bytes + sent.evaluate.wire_bytes;
  for (uint64_t acked = SocketBytesAcked(); acked > 0 && acked < wire_bytes;
       acked = SocketBytesAcked()) {
    if (SteadyTime::Now() >= deadline) return;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

absl::StatusOr<Tensor> BoundarySender::EncodeAndSend(MessageEncoder::Outgoing outgoing) {
  const MessageKey key = outgoing.key;
  Tensor& x = outgoing.x;
  absl::StatusOr<Made> made = x.empty() ? Made{WithoutTensor(outgoing, spec_)} : Encode(outgoing);
  if (!made.ok()) {
    return Annotated(made.status(), absl::StrCat("cut ", spec_.name, ": ", key.ToString()));
  }
  const bool is_of_samples = !x.empty() && HasSamples(key.phase);
  const uint64_t elements = is_of_samples ? x.elements() : 0;
  const uint64_t raw_bytes = is_of_samples ? x.bytes() : 0;
  // Drops this reference before the peer can answer. Its answer lets the executor drop its own, and
  // the thread that used the memory last must be the one to free it.
  x = Tensor();
  const uint64_t payload_bytes = made->message.payload.bytes.size();
  const uint64_t wire_bytes = SendTraced(std::move(made->message));
  const BoundaryStatistics::Traffic one{1, elements, raw_bytes, payload_bytes, wire_bytes};
  const bool counts = spec_.counts_norm || !HasSumOfSquares(key.phase);
  if (IsTaken(key.phase)) return std::move(made->received);
  if (IsPartOfTraining(key.phase) && counts) {
    counts_.AddTraining(key.step, one, made->level, made->error);
  } else {
    counts_.AddEvaluation(one);
  }
  return std::move(made->received);
}

uint64_t BoundarySender::SendTraced(Message message) {
  ScopedTimer slice(/*seconds=*/nullptr, SliceOf(message.key, "send"));
  const uint64_t wire_bytes = link_->Send(std::move(message));
  slice.set_name(SliceNameOf(link_->last_way()));
  slice.set_wire_bytes(wire_bytes);
  return wire_bytes;
}

absl::StatusOr<BoundarySender::Made> BoundarySender::Encode(
    const MessageEncoder::Outgoing& outgoing) {
  MessageEncoder& encoder = *encoders_[ReplicaOf(spec_, outgoing.key)];
  const Stopwatch stopwatch;
  ASSIGN_OR_RETURN(MessageEncoder::Encoded encoded, encoder.Encode(outgoing));
  RETURN_IF_ERROR(ToStatus(spec_.device->Finish()));  // the update of the state is timed too
  const Stopwatch::Reading took = stopwatch.Read();
  PlannedSlice slice = SliceOf(outgoing.key, "encode");
  if (slice.trace != nullptr) {
    slice.slice.ready = outgoing.submitted;
    slice.Add(took);
  }
  if (IsTrainingPass(outgoing.key.phase)) counts_.AddEncoding(took, encoded.level);
  Made made;
  if (encoder.IsMeasured(outgoing)) {
    const ScopedTimer measures(/*seconds=*/nullptr, SliceOf(outgoing.key, "measure_error"));
    ASSIGN_OR_RETURN(made.error, encoder.Measure(outgoing, encoded));
  }
  if (outgoing.want_received) made.received = encoded.feedback.received;
  made.level = encoded.level;
  made.message = std::move(encoded.message);
  return made;
}

}  // namespace thinwire
