#include "stage_server/stage/tied_copy.h"

#include "base/status.h"
#include "base/steady_time.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<TiedCopy>> TiedCopy::New(const StageSpec& stage,
                                                        const CutEndSpec& end,
                                                        const Backend& backend,
                                                        const Parameter* weight, Capture* capture,
                                                        std::unique_ptr<Link> link) {
  ASSIGN_OR_RETURN(auto made, CutEnd::New(stage, end, backend, capture, std::move(link)));
  const bool is_embedding = end.sends == DIRECTION_ACTIVATION;
  return std::unique_ptr<TiedCopy>(
      new TiedCopy(stage, is_embedding, backend, weight, std::move(made)));
}

Work TiedCopy::MessageOf(const Work& work) const {
  Work message = work;
  message.microbatch = static_cast<uint32_t>(work.replica);
  message.batch_size = message.samples = weight_.gradient.shape()[0];
  message.deadline = stage_.patience->Deadline();
  return message;
}

absl::Status TiedCopy::Send(const Work& work) {
  // A copy is sent, since the message may outlive the gradient's values.
  ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(backend_.device, weight_.gradient.dtype(),
                                                 weight_.gradient.shape()));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(weight_.gradient.view(), copy.view())));
  RETURN_IF_ERROR(ToStatus(backend_.device->Finish()));  // the link may read it on another thread
  ASSIGN_OR_RETURN(sent_, end_->SendAndKeep(MessageOf(work), /*sample_digest=*/0, std::move(copy)));
  return absl::OkStatus();
}

absl::Status TiedCopy::Receive(const Work& work) {
  ASSIGN_OR_RETURN(const auto received, end_->Receive(MessageOf(work), /*sample_digest=*/0));
  const Tensor own = std::move(sent_);
  const Tensor& embedding = is_embedding_ ? own : received.tensor;
  const Tensor& head = is_embedding_ ? received.tensor : own;
  return ToStatus(backend_.ops->Add(embedding.view(), head.view(), weight_.gradient.view()));
}

}  // namespace thinwire
