#include "stage_server/boundary/receiver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/stopwatch.h"
#include "wire/message_kind.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<BoundaryReceiver>> BoundaryReceiver::New(const BoundarySpec& spec,
                                                                        Link* link, Worker worker,
                                                                        SupportMaps* support) {
  Decoders decoders(spec.replicas);
  for (auto& decoder : decoders) {
    ASSIGN_OR_RETURN(decoder, MessageDecoder::New(spec, support));
  }
  // Hands the device memory on to the decoding thread.
  RETURN_IF_ERROR(ToStatus(spec.device->Finish()));
  return std::unique_ptr<BoundaryReceiver>(
      new BoundaryReceiver(spec, link, worker, std::move(decoders)));
}

BoundaryReceiver::BoundaryReceiver(const BoundarySpec& spec, Link* link, Worker worker,
                                   Decoders decoders)
    : spec_(spec),
      link_(link),
      decoders_(std::move(decoders)),
      has_worker_(worker == Worker::kOwnThread) {
  if (has_worker_) worker_.emplace([this] { WorkerLoop(); });
}

BoundaryReceiver::~BoundaryReceiver() {
  Stop(absl::CancelledError(absl::StrCat("cut ", spec_.name, ": closed")));
  if (worker_) worker_->join();
}

void BoundaryReceiver::Stop(const absl::Status& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = reason;
    changed_.notify_all();
  }
  link_->Close(reason);
}

void BoundaryReceiver::StartEpoch(std::shared_ptr<const EpochRows> rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  order_.Start(std::move(rows));
  changed_.notify_all();
}

void BoundaryReceiver::WorkerLoop() {
  for (;;) {
    // Stop ends this wait; deadlines are those of the executor's own waits.
    absl::StatusOr<Decoded> decoded = ReceiveAndDecode(SteadyTime::Never());
    absl::Status status = decoded.status();
    if (!status.ok()) (void)spec_.device->Finish();  // other threads will free the memory used here
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    // Nothing here holds the peer back. One that keeps to the schedule never has more messages
    // here.
    if (status.ok() && static_cast<int>(ready_.size()) >= spec_.capacity) {
      status = absl::ResourceExhaustedError(
          absl::StrCat("cut ", spec_.name, ": ", spec_.peer, " sent ", spec_.capacity + 1,
                       " messages that were not asked for, the schedule allows ", spec_.capacity));
      link_->Close(status);
    }
    if (status.ok()) ready_.push_back(*std::move(decoded));
    status_ = status;
    changed_.notify_all();
    if (!status.ok()) return;
  }
}

absl::StatusOr<BoundaryReceiver::Decoded> BoundaryReceiver::ReceiveAndDecode(SteadyTime deadline) {
  ASSIGN_OR_RETURN(Message message, link_->Receive(deadline));
  counts_.AddReceived();
  Decoded decoded{message, Tensor(), nullptr};
  if (!HasTensor(message.key.phase, message.key.direction)) return decoded;
  absl::Status status = decoders_[ReplicaOf(spec_, message.key)]->Check(message);
  if (status.ok()) status = Decode(message, &decoded);
  if (!status.ok()) {
    status = Named(message.key, status);
    link_->Close(status);
    return status;
  }
  return decoded;
}

absl::Status BoundaryReceiver::Decode(const Message& message, Decoded* decoded) {
  MessageDecoder& decoder = *decoders_[ReplicaOf(spec_, message.key)];
  std::shared_ptr<const EpochRows> rows;
  if (decoder.NeedsRows(message)) {
    ASSIGN_OR_RETURN(rows, RowsOf(message.key));
  }
  const Stopwatch stopwatch;
  ASSIGN_OR_RETURN(decoded->tensor, decoder.Decode(message, rows.get()));
  const bool keeps = spec_.keeps_payloads && IsTrainingPass(message.key.phase);
  if (keeps && decoder.DecodedAlone(message)) {
    ASSIGN_OR_RETURN(decoded->payload, ReceivedPayload::Of(spec_, message));
  }
  RETURN_IF_ERROR(ToStatus(spec_.device->Finish()));  // the executor uses the tensor next
  const Stopwatch::Reading took = stopwatch.Read();
  PlannedSlice slice =
      MessageSlice(spec_, has_worker_ ? Slice::Thread::kDecoder : Slice::Thread::kExecutor,
                   message.key, "decode");
  if (slice.trace != nullptr) {
    slice.slice.ready = message.arrived;
    slice.Add(took);
  }
  if (IsTrainingPass(message.key.phase)) counts_.AddDecoding(took);
  return absl::OkStatus();
}

bool BoundaryReceiver::Await(std::unique_lock<std::mutex>* lock, SteadyTime deadline,
                             const std::function<bool()>& is_over) {
  do {
    if (changed_.wait_until(*lock, deadline.chrono(), is_over)) return true;
  } while (spec_.patience->Extend(SteadyTime::Now(), &deadline));
  return false;
}

// Waits where a neighbour is an epoch ahead of this stage's executor, which calls StartEpoch when
// it gets there.
absl::StatusOr<std::shared_ptr<const EpochRows>> BoundaryReceiver::RowsOf(const MessageKey& key) {
  std::unique_lock<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(order_.Check(key));
  if (order_.is_complete()) {
    if (!has_worker_) {
      return absl::FailedPreconditionError(absl::StrCat("epoch ", key.epoch, " has not begun"));
    }
    if (!Await(&lock, spec_.patience->Deadline(),
               [this] { return !status_.ok() || !order_.is_complete(); })) {
      return absl::DeadlineExceededError(
          absl::StrCat("epoch ", key.epoch, " has not begun here within ",
                       absl::FormatDuration(spec_.patience->limit()), " of this message"));
    }
    RETURN_IF_ERROR(status_);
    RETURN_IF_ERROR(order_.Check(key));
  }
  order_.Advance();
  return order_.rows();
}

absl::StatusOr<BoundaryReceiver::Decoded> BoundaryReceiver::Next(const MessageKey& wanted,
                                                                 SteadyTime deadline) {
  if (!has_worker_) {
    do {
      absl::StatusOr<Decoded> decoded = ReceiveAndDecode(deadline);
      if (!absl::IsDeadlineExceeded(decoded.status())) return decoded;
    } while (spec_.patience->Extend(SteadyTime::Now(), &deadline));
    return Overdue(wanted);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (!Await(&lock, deadline, [this] { return !ready_.empty() || !status_.ok(); })) {
    return Overdue(wanted);
  }
  // What came before the end is still handed out.
  if (ready_.empty()) return status_;
  Decoded decoded = std::move(ready_.front());
  ready_.pop_front();
  return decoded;
}

absl::Status BoundaryReceiver::Overdue(const MessageKey& wanted) const {
  return absl::DeadlineExceededError(absl::StrCat("cut ", spec_.name, ", from ", spec_.peer,
                                                  ": no ", wanted.ToString(), " by the deadline"));
}

absl::Status BoundaryReceiver::Named(const MessageKey& key, const absl::Status& status) const {
  if (status.ok()) return status;
  return Annotated(status,
                   absl::StrCat("cut ", spec_.name, ", from ", spec_.peer, ": ", key.ToString()));
}

absl::StatusOr<BoundaryReceiver::Received> BoundaryReceiver::Receive(Expected expected,
                                                                     SteadyTime deadline) {
  expected.key.direction = spec_.direction;
  expected.key.cut = spec_.cut;
  ASSIGN_OR_RETURN(Decoded got, Next(expected.key, deadline));
  RETURN_IF_ERROR(Named(expected.key, CheckReceived(expected, got)));
  return Received{std::move(got.tensor), got.sample_digest, std::move(got.document_starts),
                  std::move(got.payload)};
}

absl::Status BoundaryReceiver::CheckReceived(const Expected& expected, const Decoded& got) const {
  if (!(got.key == expected.key)) {
    return absl::InvalidArgumentError(absl::StrCat("got the ", got.key.ToString()));
  }
  if (got.tensor.shape()[0] != expected.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat(got.tensor.shape()[0], " samples, want ", expected.batch));
  }
  RETURN_IF_ERROR(CheckExactness(spec_, expected.compressed, got));
  if (expected.sample_digest && *expected.sample_digest != got.sample_digest) {
    return absl::InvalidArgumentError(absl::StrCat("sample digest ", absl::Hex(got.sample_digest),
                                                   ", want ", absl::Hex(*expected.sample_digest),
                                                   ": the stages do not read the same samples"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundaryReceiver::Decoded> BoundaryReceiver::NextWithoutTensor(MessageKey wanted,
                                                                              SteadyTime deadline) {
  wanted.direction = spec_.direction;
  wanted.cut = spec_.cut;
  ASSIGN_OR_RETURN(Decoded got, Next(wanted, deadline));
  if (got.key == wanted) return got;
  return Named(wanted, absl::InvalidArgumentError(absl::StrCat("got the ", got.key.ToString())));
}

absl::Status BoundaryReceiver::ReceiveAcknowledgement(MessageKey key, SteadyTime deadline) {
  return NextWithoutTensor(key, deadline).status();
}

absl::StatusOr<double> BoundaryReceiver::ReceiveSumOfSquares(MessageKey key, SteadyTime deadline) {
  ASSIGN_OR_RETURN(const Decoded got, NextWithoutTensor(key, deadline));
  return *got.sum_of_squares;  // the frame checker refuses such messages without one
}

}  // namespace thinwire
