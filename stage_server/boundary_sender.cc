#include "stage_server/boundary_sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/distortion.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr absl::Duration kAcknowledgementPatience = absl::Seconds(1);

const char* Name(Direction direction) {
  return direction == DIRECTION_ACTIVATION ? "activation" : "gradient";
}

uint64_t MessageRandomKey(const BoundarySpec& spec, const MessageKey& key) {
  const uint64_t stream = RandomKey(
      spec.codec_seed, absl::StrCat(spec.name, "/", Name(spec.direction), "/", key.phase));
  return RandomKey(stream, key.step, key.microbatch);
}

BoundaryStatistics::Traffic& TrafficOf(Phase phase, BoundaryStatistics* statistics) {
  return phase == PHASE_TRAIN ? statistics->train : statistics->evaluate;
}

void Accumulate(const Distortion& distortion, BoundaryStatistics* statistics) {
  ++statistics->measured_messages;
  statistics->last_distortion = distortion;
  statistics->distortion_sum.relative_error += distortion.relative_error;
  statistics->distortion_sum.cosine += distortion.cosine;
  statistics->distortion_sum.nonzero_fraction += distortion.nonzero_fraction;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BoundarySender>> BoundarySender::New(const BoundarySpec& spec,
                                                                    Link* link, Worker worker) {
  ASSIGN_OR_RETURN(auto codec, NewCodec(spec.codec, spec.kernels));
  ASSIGN_OR_RETURN(auto exact, NewCodec(CodecSpec(), spec.kernels));
  return std::unique_ptr<BoundarySender>(
      new BoundarySender(spec, link, worker, std::move(codec), std::move(exact)));
}

BoundarySender::BoundarySender(const BoundarySpec& spec, Link* link, Worker worker,
                               std::unique_ptr<Codec> codec, std::unique_ptr<Codec> exact)
    : spec_(spec), link_(link), codec_(std::move(codec)), exact_(std::move(exact)) {
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

absl::Status BoundarySender::Send(MessageKey key, uint64_t sample_digest, bool compress, Tensor x) {
  return Submit({key, sample_digest, compress, std::move(x)});
}

absl::Status BoundarySender::SendAcknowledgement(MessageKey key) {
  return Submit({key, /*sample_digest=*/0, /*compress=*/false, Tensor()});
}

absl::Status BoundarySender::Submit(Job job) {
  job.key.direction = spec_.direction;
  job.key.cut = spec_.cut;
  if (!worker_) return EncodeAndSend(std::move(job));
  const std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(status_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return absl::OkStatus();
}

void BoundarySender::WorkerLoop() {
  for (;;) {
    Job job;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      encoding_ = false;
      changed_.notify_all();
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      encoding_ = true;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    const absl::Status status = EncodeAndSend(std::move(job));
    if (!status.ok()) {
      link_->Close(status);
      const std::lock_guard<std::mutex> lock(mutex_);
      status_ = status;
      changed_.notify_all();
      return;
    }
  }
}

absl::Status BoundarySender::Flush(absl::Time deadline) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool idle = changed_.wait_until(lock, absl::ToChronoTime(deadline), [this] {
      return !status_.ok() || (jobs_.empty() && !encoding_);
    });
    if (!idle) {
      return absl::DeadlineExceededError(absl::StrCat("cut ", spec_.name, ": ", jobs_.size(),
                                                      " messages were not encoded in time"));
    }
    RETURN_IF_ERROR(status_);
  }
  RETURN_IF_ERROR(link_->Flush(deadline));
  AwaitAcknowledgement(std::min(deadline, absl::Now() + kAcknowledgementPatience));
  return absl::OkStatus();
}

// gRPC does not say when bytes have left, the kernel does. Without a TCP socket there is nothing
// to ask.
void BoundarySender::AwaitAcknowledgement(absl::Time deadline) const {
  const BoundaryStatistics sent = statistics();
  const uint64_t wire_bytes = sent.train.wire_bytes + sent.evaluate.wire_bytes;
  for (uint64_t acked = SocketBytesAcked(); acked > 0 && acked < wire_bytes;
       acked = SocketBytesAcked()) {
    if (absl::Now() >= deadline) return;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

absl::Status BoundarySender::EncodeAndSend(Job job) {
  Message message;
  message.key = job.key;
  message.dtype = spec_.compute;
  message.sample_digest = job.sample_digest;
  message.shape = job.x.empty() ? Shape{0} : job.x.shape();
  if (job.compress) message.codec = spec_.codec;
  if (!job.x.empty()) {
    const absl::Time start = absl::Now();
    const double cpu_start = ThreadCpuSeconds();
    absl::StatusOr<Payload> payload = Encode(job);
    if (!payload.ok()) return Annotate(payload.status(), job.key);
    message.payload = *std::move(payload);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    const double cpu_seconds = ThreadCpuSeconds() - cpu_start;
    if (job.key.phase == PHASE_TRAIN) {
      const std::lock_guard<std::mutex> lock(mutex_);
      statistics_.encode.Observe(seconds);
      statistics_.encode_cpu_seconds += cpu_seconds;
    }
    if (spec_.error_every > 0 && job.key.phase == PHASE_TRAIN && job.compress &&
        job.key.step % spec_.error_every == 0) {
      RETURN_IF_ERROR(Annotate(MeasureError(job, message.payload), job.key));
    }
  }
  const uint64_t payload_bytes = message.payload.bytes.size();
  const uint64_t wire_bytes = link_->Send(std::move(message));
  const std::lock_guard<std::mutex> lock(mutex_);
  BoundaryStatistics::Traffic& traffic = TrafficOf(job.key.phase, &statistics_);
  ++traffic.messages;
  traffic.elements += job.x.empty() ? 0 : job.x.elements();
  traffic.raw_bytes += job.x.empty() ? 0 : job.x.bytes();
  traffic.payload_bytes += payload_bytes;
  traffic.wire_bytes += wire_bytes;
  return absl::OkStatus();
}

absl::StatusOr<Payload> BoundarySender::Encode(const Job& job) {
  const bool as_it_is = !job.compress || spec_.codec.kind == CodecKind::kNone;
  if (as_it_is && spec_.device->is_host()) {
    // The tensor's own memory goes to the wire: nobody writes to it any more.
    const auto* data = static_cast<const uint8_t*>(job.x.data());
    return Payload{job.x.buffer(), absl::MakeConstSpan(data, job.x.bytes())};
  }
  const Codec& codec = as_it_is ? *exact_ : *codec_;
  const size_t capacity = codec.MaxPayloadBytes(job.x.shape(), job.x.dtype());
  ASSIGN_OR_RETURN(auto buffer, Buffer::Allocate(CpuDevice(), capacity));
  auto* data = static_cast<uint8_t*>(buffer->data());
  ASSIGN_OR_RETURN(const size_t bytes, codec.Encode(job.x, {MessageRandomKey(spec_, job.key)},
                                                    absl::MakeSpan(data, capacity)));
  return Payload{std::move(buffer), absl::MakeConstSpan(data, bytes)};
}

absl::Status BoundarySender::MeasureError(const Job& job, const Payload& payload) {
  ASSIGN_OR_RETURN(Tensor decoded, Tensor::Allocate(spec_.device, job.x.dtype(), job.x.shape()));
  RETURN_IF_ERROR(codec_->Decode(payload.bytes, {}, &decoded));
  ASSIGN_OR_RETURN(const Distortion distortion, MeasureDistortion(job.x, decoded, spec_.kernels));
  const std::lock_guard<std::mutex> lock(mutex_);
  Accumulate(distortion, &statistics_);
  return absl::OkStatus();
}

absl::Status BoundarySender::Annotate(const absl::Status& status, const MessageKey& key) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("cut ", spec_.name, ": ", key.ToString(), ": ",
                                                  status.message()));
}

BoundaryStatistics BoundarySender::statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

}  // namespace thinwire
