// One end of one cut: sends the tensors of one direction and receives those of the other. Ends
// inside a process differ from ends between processes only in their link and in the thread that
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
#include "nn/segment/segment.h"
#include "stage_server/boundary/receiver.h"
#include "stage_server/boundary/sender.h"
#include "stage_server/boundary/support_maps.h"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/stage.h"
#include "wire/link.h"

namespace thinwire {

// Names one end of one cut.
struct CutEndSpec {
  int cut = 0;  // index in model order
  // Activations for the end before the cut, which receives gradients; gradients for the end behind
  // it.
  Direction sends = DIRECTION_UNSPECIFIED;
  std::string peer;  // the other end, as error messages name it: "stage 2 (10.0.0.7:4700)"
  Worker worker = Worker::kOwnThread;
  int carrier = StageSpec::kSameCarrier;  // of the other end
  ReplicaRange replicas = {};             // that both carry, if that is another carrier

  Direction receives() const {
    return sends == DIRECTION_ACTIVATION ? DIRECTION_GRADIENT : DIRECTION_ACTIVATION;
  }
};

// An end of a cut to another stage; its peer is called by that stage: "stage 2".
struct NeighbourEnd {
  CutEndSpec end;
  int stage = 0;
};
// Returns all such ends of a stage, for each cut those to all machines that it is linked with. For
// each chunk these are the ends before it, which the stage before dials, and those behind it, which
// dial. The ends of the tied cut come last; the first stage dials them. They encode and decode on
// the executor's thread, as the executor waits for both gradients anyway.
std::vector<NeighbourEnd> NeighbourEnds(const StageSpec& stage);

// Returns what the link of that end accepts.
absl::StatusOr<LinkOptions> LinkOptionsOf(const StageSpec& stage, const CutEndSpec& end,
                                          const Backend& backend);

class CutEnd {
 public:
  // Makes an end. `stage`, `backend` and `capture` outlive it; `link` was made with LinkOptionsOf.
  static absl::StatusOr<std::unique_ptr<CutEnd>> New(const StageSpec& stage, const CutEndSpec& spec,
                                                     const Backend& backend, Capture* capture,
                                                     std::unique_ptr<Link> link);

  // Sends this end's tensor of `work` and offers it to the capture. Of gradients that need no
  // `document_starts` (as in MessageHeader) they are left out. See BoundarySender::Send.
  absl::Status Send(const Work& work, uint64_t sample_digest, Tensor x,
                    std::vector<uint32_t> document_starts = {});
  // Receives the peer's tensor of `work`. Without `sample_digest` the message's own is handed on.
  // See BoundaryReceiver::Receive.
  absl::StatusOr<BoundaryReceiver::Received> Receive(const Work& work,
                                                     std::optional<uint64_t> sample_digest);

  // Acknowledge, and await, an evaluation batch. Evaluation has no backward pass that would bound
  // the batches under way. So between processes the receiving end acknowledges each batch, and the
  // sending end waits for the acknowledgement of batch `step`. The wait has its own deadline: the
  // forward pass of `work` may have taken most of the action's.
  absl::Status Acknowledge(const Work& work) { return sender_->SendAcknowledgement(work.key()); }
  absl::Status AwaitAcknowledgement(const Work& work, uint64_t step);

  // Do the same for a microbatch, or slice, of a training step at a cut that gradients do not
  // cross. The sending end waits in the order in which activations were sent, while the slices of a
  // microbatch go back in descending order.
  absl::Status AcknowledgeTraining(const Work& work);
  absl::Status AwaitTaken(const Work& work);

  // Exchange a part of the gradient's norm at the end of the step of `work`. The wait has its own
  // deadline.
  absl::Status SendSumOfSquares(const Work& work, double sum);
  absl::StatusOr<double> ReceiveSumOfSquares(const Work& work);

  // Exchange the gradients of a weight that has a copy at either end (GradientCopy). The first
  // never waits, and returns the gradient as the peer will use it, valid until the end's next
  // message. The wait of the other has its own deadline.
  absl::StatusOr<Tensor> SendGradient(const Work& work, const Tensor& gradient);
  absl::StatusOr<Tensor> ReceiveGradient(const Work& work);

  // Return the slice of the executor's wait for the peer's message of `work`, or for one after the
  // backward passes.
  PlannedSlice WaitSlice(const Work& work) const {
    return At(MicrobatchSlice(stage_, work, kWait));
  }
  PlannedSlice StepWaitSlice(const Work& work) const { return At(StepSlice(stage_, work, kWait)); }

  int cut() const { return static_cast<int>(receiver_->spec().cut); }
  // Returns the replicas whose tensors go through this end.
  const ReplicaRange& replicas() const { return replicas_; }
  BoundarySender& sender() { return *sender_; }
  BoundaryReceiver& receiver() { return *receiver_; }
  // Drops the supports that a broken step left behind.
  void Abandon() { support_.Clear(); }

 private:
  CutEnd(const StageSpec& stage, const CutEndSpec& spec, const Backend& backend, Capture* capture,
         std::unique_ptr<Link> link)
      : stage_(stage),
        replicas_(spec.carrier == StageSpec::kSameCarrier ? stage.carried() : spec.replicas),
        backend_(backend),
        capture_(capture),
        link_(std::move(link)) {}
  // Returns whether a weight's gradients cross here, as a codec leaves them, instead of samples.
  bool is_tied() const { return cut() == stage_.tied_cut(); }

  static constexpr char kWait[] = "receive_wait";
  PlannedSlice At(const PlannedSlice& slice) const {
    return slice.At(receiver_->spec().cut, receiver_->spec().direction);
  }

  const StageSpec& stage_;
  const ReplicaRange replicas_;
  const Backend& backend_;
  Capture* const capture_;
  // Sender and receiver use both of these, so they come first here and are destroyed last.
  const std::unique_ptr<Link> link_;
  SupportMaps support_;
  std::unique_ptr<BoundarySender> sender_;
  std::unique_ptr<BoundaryReceiver> receiver_;
};

// The ends of one cut to the machines of another stage: one, or one to each machine that carries
// some of the replicas that are carried here.
class CutEnds {
 public:
  bool empty() const { return ends_.empty(); }
  bool Has(int carrier) const;
  // Adds the end to a carrier.
  void Add(int carrier, std::unique_ptr<CutEnd> end);
  // Returns the end through which a replica's tensors go.
  CutEnd& Of(int replica) const;
  // Returns all, in order of carriers.
  std::vector<CutEnd*> all() const;

 private:
  struct Entry {
    int carrier;
    std::unique_ptr<CutEnd> end;
  };
  std::vector<Entry> ends_;
};

// Both ends of a cut inside the process: `upstream` belongs to the segment before it, `downstream`
// to the one behind.
struct InnerCut {
  std::unique_ptr<CutEnd> upstream, downstream;
};
absl::StatusOr<InnerCut> NewInnerCut(const StageSpec& stage, int cut, const Backend& backend,
                                     Capture* capture);

// One of the two copies of a weight, at its end of a cut: of a tied weight (models/tied_weight.h),
// or of a basis that the cut's bottleneck learns (models/bottleneck.h). Once a step both copies
// exchange their gradients, and each then has the sum.
struct GradientCopy {
  CutEnd* end = nullptr;
  const Parameter* weight = nullptr;
};

}  // namespace thinwire
