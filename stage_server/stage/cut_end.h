// One end of one cut: sends the tensors of one direction and receives those of the other. Ends
// inside a process and ends between processes differ in their link only, and in whose thread
// encodes and decodes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage_server/boundary/receiver.h"
#include "stage_server/boundary/sender.h"
#include "stage_server/boundary/support_maps.h"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/stage.h"
#include "wire/link.h"

namespace thinwire {

// Which end of which cut.
struct CutEndSpec {
  int cut = 0;  // index in model order
  // Activations: the end before the cut, which receives gradients. Gradients: the end behind it.
  Direction sends = DIRECTION_UNSPECIFIED;
  std::string peer;  // who is at the other end, for messages: "stage 2 (10.0.0.7:4700)"
  Worker worker = Worker::kOwnThread;

  Direction receives() const {
    return sends == DIRECTION_ACTIVATION ? DIRECTION_GRADIENT : DIRECTION_ACTIVATION;
  }
};

// The ends of the tied cut, `sends` as for the others: the executor waits for both gradients, so
// they are encoded and decoded on its thread.
CutEndSpec TiedEnd(const StageSpec& stage, Direction sends, const std::string& peer);

// An end whose other end is at another stage, by which its peer is called: "stage 2".
struct NeighbourEnd {
  CutEndSpec end;
  int stage = 0;
};
// All of them that a stage has: of each chunk the one before it, which is dialled from there, and
// the one behind it, which dials; then that of the tied cut, which the first stage dials.
std::vector<NeighbourEnd> NeighbourEnds(const StageSpec& stage);

// What the link of that end accepts.
absl::StatusOr<LinkOptions> LinkOptionsOf(const StageSpec& stage, const CutEndSpec& end,
                                          const Backend& backend);

class CutEnd {
 public:
  // `stage` and `capture` outlive the end. `link` was made with LinkOptionsOf.
  static absl::StatusOr<std::unique_ptr<CutEnd>> New(const StageSpec& stage, const CutEndSpec& spec,
                                                     const Backend& backend, Capture* capture,
                                                     std::unique_ptr<Link> link);

  // Sends this end's tensor of `work`, which the capture may keep a copy of. See BoundarySender.
  absl::Status Send(const Work& work, uint64_t sample_digest, Tensor x);
  // Sends the same, and gives what the peer will use of it. See BoundarySender::SendAndKeep.
  absl::StatusOr<Tensor> SendAndKeep(const Work& work, uint64_t sample_digest, Tensor x);
  // Receives the peer's tensor of `work`. Without `sample_digest` the message's own is handed on.
  // See BoundaryReceiver.
  absl::StatusOr<BoundaryReceiver::Received> Receive(const Work& work,
                                                     std::optional<uint64_t> sample_digest);

  // Evaluation has no backward pass to bound it: between processes the end that receives a batch
  // acknowledges it, and the end that sends waits, batch after batch, for that of `step`. The wait
  // has a deadline of its own: the forward of `work` may have taken most of the action's.
  absl::Status Acknowledge(const Work& work) { return sender_->SendAcknowledgement(work.key()); }
  absl::Status AwaitAcknowledgement(const Work& work, uint64_t step);

  // A part of the gradient's norm at the end of the step of `work`. The wait has a deadline of its
  // own.
  absl::Status SendSumOfSquares(const Work& work, double sum);
  absl::StatusOr<double> ReceiveSumOfSquares(const Work& work);

  // This side's gradient of a basis that the cut learns, and the other side's: exact. The wait has
  // a deadline of its own.
  absl::Status SendBasis(const Work& work, Tensor gradient);
  absl::StatusOr<Tensor> ReceiveBasis(const Work& work);

  // The executor's wait for the peer's message of `work`, or for one behind the backward passes.
  PlannedSlice WaitSlice(const Work& work) const {
    return At(MicrobatchSlice(stage_, work, kWait));
  }
  PlannedSlice StepWaitSlice(const Work& work) const { return At(StepSlice(stage_, work, kWait)); }

  int cut() const { return static_cast<int>(receiver_->spec().cut); }
  BoundarySender& sender() { return *sender_; }
  BoundaryReceiver& receiver() { return *receiver_; }
  // Drops what a broken step left behind.
  void Abandon() { support_.Clear(); }

 private:
  CutEnd(const StageSpec& stage, Capture* capture, std::unique_ptr<Link> link)
      : stage_(stage), capture_(capture), link_(std::move(link)) {}

  static constexpr char kWait[] = "receive_wait";
  PlannedSlice At(const PlannedSlice& slice) const {
    return slice.At(receiver_->spec().cut, receiver_->spec().direction);
  }

  const StageSpec& stage_;
  Capture* const capture_;
  // Sender and receiver use both, and go first.
  const std::unique_ptr<Link> link_;
  SupportMaps support_;
  std::unique_ptr<BoundarySender> sender_;
  std::unique_ptr<BoundaryReceiver> receiver_;
};

}  // namespace thinwire
