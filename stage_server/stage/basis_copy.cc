#include "stage_server/stage/basis_copy.h"

#include <utility>

#include "base/status.h"

namespace thinwire {

absl::Status BasisCopy::Send(const Work& work) const {
  // A copy is sent, since the message may outlive the gradient's values.
  const Tensor& gradient = basis_->gradient;
  ASSIGN_OR_RETURN(Tensor sent,
                   Tensor::Allocate(backend_.device, gradient.dtype(), gradient.shape()));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(gradient.view(), sent.view())));
  RETURN_IF_ERROR(ToStatus(backend_.device->Finish()));  // a codec's thread reads it
  return end_->SendBasis(work, std::move(sent));
}

absl::Status BasisCopy::Receive(const Work& work) const {
  ASSIGN_OR_RETURN(const Tensor other, end_->ReceiveBasis(work));
  const TensorView sum = basis_->gradient.view();
  RETURN_IF_ERROR(ToStatus(backend_.ops->Add(sum, other.view(), sum)));
  return ToStatus(backend_.device->Finish());
}

}  // namespace thinwire
