#include "stage_server/boundary_receiver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace thinwire {
namespace {

// An acknowledgement has no elements and no codec.
bool IsAcknowledgement(const MessageKey& key) {
  return key.direction == DIRECTION_GRADIENT && key.phase != PHASE_TRAIN;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BoundaryReceiver>> BoundaryReceiver::New(const BoundarySpec& spec,
                                                                        Link* link, Worker worker) {
  ASSIGN_OR_RETURN(auto codec, NewCodec(spec.codec, spec.kernels));
  ASSIGN_OR_RETURN(auto exact, NewCodec(CodecSpec(), spec.kernels));
  return std::unique_ptr<BoundaryReceiver>(
      new BoundaryReceiver(spec, link, worker, std::move(codec), std::move(exact)));
}

BoundaryReceiver::BoundaryReceiver(const BoundarySpec& spec, Link* link, Worker worker,
                                   std::unique_ptr<Codec> codec, std::unique_ptr<Codec> exact)
    : spec_(spec), link_(link), codec_(std::move(codec)), exact_(std::move(exact)) {
  if (worker == Worker::kOwnThread) worker_.emplace([this] { WorkerLoop(); });
}

BoundaryReceiver::~BoundaryReceiver() {
  if (worker_) {
    link_->Close(absl::CancelledError(absl::StrCat("cut ", spec_.name, ": closed")));
    worker_->join();
  }
}

void BoundaryReceiver::WorkerLoop() {
  absl::Status status;
  while (status.ok()) {
    // Woken by Close: the executor's own waits are the ones with deadlines.
    absl::StatusOr<Decoded> decoded = ReceiveAndDecode(absl::InfiniteFuture());
    const std::lock_guard<std::mutex> lock(mutex_);
    status = decoded.status();
    if (status.ok() && static_cast<int>(ready_.size()) >= spec_.capacity) {
      status = absl::ResourceExhaustedError(
          absl::StrCat("cut ", spec_.name, ": ", spec_.peer, " sent ", spec_.capacity + 1,
                       " messages that were not asked for, the schedule allows ", spec_.capacity));
      link_->Close(status);
    }
    if (status.ok()) ready_.push_back(*std::move(decoded));
    status_ = status;
    changed_.notify_all();
  }
}

absl::StatusOr<BoundaryReceiver::Decoded> BoundaryReceiver::ReceiveAndDecode(absl::Time deadline) {
  ASSIGN_OR_RETURN(Message message, link_->Receive(deadline));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    statistics_.last_receive_unix_seconds = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  }
  Decoded decoded;
  decoded.key = message.key;
  decoded.codec = message.codec;
  decoded.sample_digest = message.sample_digest;
  if (IsAcknowledgement(message.key)) return decoded;
  absl::Status status = CheckHeader(message);
  if (status.ok()) {
    absl::StatusOr<Tensor> tensor = Decode(message);
    if (tensor.ok()) decoded.tensor = *std::move(tensor);
    status = tensor.status();
  }
  if (!status.ok()) {
    const absl::Status named(
        status.code(),
        absl::StrCat("cut ", spec_.name, ": ", message.key.ToString(), ": ", status.message()));
    link_->Close(named);
    return named;
  }
  return decoded;
}

absl::Status BoundaryReceiver::CheckHeader(const Message& message) const {
  if (message.dtype != spec_.compute) {
    return absl::InvalidArgumentError(absl::StrCat("element type ", thinwire::Name(message.dtype),
                                                   ", want ", thinwire::Name(spec_.compute)));
  }
  const Shape& shape = message.shape;
  if (shape.rank() < 1 || shape[0] < 1 || shape[0] > spec_.max_batch ||
      shape != spec_.sample.WithBatch(shape[0])) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", shape.ToString(), ", want ",
                     spec_.sample.WithBatch(spec_.max_batch).ToString(), " or fewer samples"));
  }
  const CodecSpec none;
  if (message.codec != spec_.codec && message.codec != none) {
    return absl::InvalidArgumentError(absl::StrCat("codec ", message.codec.ToString(), ", want ",
                                                   spec_.codec.ToString(), " or none"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> BoundaryReceiver::Decode(const Message& message) {
  const absl::Time start = absl::Now();
  const double cpu_start = ThreadCpuSeconds();
  Tensor tensor;
  if (message.codec.kind == CodecKind::kNone && spec_.device->is_host()) {
    const size_t want = message.shape.elements() * SizeOf(spec_.compute);
    if (message.payload.bytes.size() != want) {
      return absl::InvalidArgumentError(
          absl::StrCat("payload of ", message.payload.bytes.size(), " bytes, want ", want));
    }
    // The gathered payload becomes the tensor.
    auto* data = const_cast<uint8_t*>(message.payload.bytes.data());
    tensor = Tensor(Buffer::Wrap(spec_.device, data, want, message.payload.owner), spec_.compute,
                    message.shape);
  } else {
    ASSIGN_OR_RETURN(tensor, Tensor::Allocate(spec_.device, spec_.compute, message.shape));
    const Codec& codec = message.codec.kind == CodecKind::kNone ? *exact_ : *codec_;
    RETURN_IF_ERROR(codec.Decode(message.payload.bytes, {}, &tensor));
  }
  if (message.key.phase == PHASE_TRAIN) {
    const std::lock_guard<std::mutex> lock(mutex_);
    statistics_.decode.Observe(absl::ToDoubleSeconds(absl::Now() - start));
    statistics_.decode_cpu_seconds += ThreadCpuSeconds() - cpu_start;
  }
  return tensor;
}

absl::StatusOr<BoundaryReceiver::Decoded> BoundaryReceiver::Next(const MessageKey& wanted,
                                                                 absl::Time deadline) {
  if (!worker_) return ReceiveAndDecode(deadline);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_until(lock, absl::ToChronoTime(deadline),
                           [this] { return !ready_.empty() || !status_.ok(); })) {
    return absl::DeadlineExceededError(absl::StrCat("cut ", spec_.name, ": no ", wanted.ToString(),
                                                    " from ", spec_.peer, " by the deadline"));
  }
  if (ready_.empty()) return status_;
  Decoded decoded = std::move(ready_.front());
  ready_.pop_front();
  return decoded;
}

absl::StatusOr<BoundaryReceiver::Received> BoundaryReceiver::Receive(Expected expected,
                                                                     absl::Time deadline) {
  expected.key.direction = spec_.direction;
  expected.key.cut = spec_.cut;
  ASSIGN_OR_RETURN(Decoded got, Next(expected.key, deadline));
  const std::string at = absl::StrCat("cut ", spec_.name, ": ", expected.key.ToString(), ": ");
  if (!(got.key == expected.key)) {
    return absl::InvalidArgumentError(absl::StrCat(at, "got the ", got.key.ToString()));
  }
  if (got.tensor.shape()[0] != expected.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat(at, got.tensor.shape()[0], " samples, want ", expected.batch));
  }
  const CodecSpec want = expected.compressed ? spec_.codec : CodecSpec();
  if (got.codec != want) {
    return absl::InvalidArgumentError(
        absl::StrCat(at, "codec ", got.codec.ToString(), ", want ", want.ToString()));
  }
  if (expected.sample_digest && *expected.sample_digest != got.sample_digest) {
    return absl::InvalidArgumentError(absl::StrCat(
        at, "sample digest ", absl::Hex(got.sample_digest), ", want ",
        absl::Hex(*expected.sample_digest), ": the stages do not read the same samples"));
  }
  return Received{std::move(got.tensor), got.sample_digest};
}

absl::Status BoundaryReceiver::ReceiveAcknowledgement(MessageKey key, absl::Time deadline) {
  key.direction = spec_.direction;
  key.cut = spec_.cut;
  ASSIGN_OR_RETURN(Decoded got, Next(key, deadline));
  if (got.key == key) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cut ", spec_.name, ": ", key.ToString(), ": got the ", got.key.ToString()));
}

BoundaryStatistics BoundaryReceiver::statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

}  // namespace thinwire
