#include "stage_server/replicas/factored_piece.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "compress/checks/distortion.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

absl::Status CheckFinite(const Tensor& factor) {
  for (const float number : factor.floats()) {
    if (!std::isfinite(number)) return absl::OutOfRangeError("a number that is not finite");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> FactoredPiece::Project(int replica, const Tensor& gradient,
                                              std::vector<uint64_t> rows, FeedbackSender* sender) {
  Own& own = own_[replica];
  own.sender = sender;
  ASSIGN_OR_RETURN(own.message, sender->Compensate(gradient, std::move(rows)));
  return steps_.Project(own.message, sender->carry().get(), &own.largest);
}

absl::Status FactoredPiece::MakeBasis(Tensor sum) {
  RETURN_IF_ERROR(CheckFinite(sum));
  basis_ = std::move(sum);
  steps_.Orthonormalise(basis_);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FactoredPiece::ProductWith(const Tensor& q) {
  ASSIGN_OR_RETURN(const Tensor used, shared_->product.Get(shared_->device, DType::kF32, shape_));
  RETURN_IF_ERROR(steps_.Multiply(basis_, q, used));
  return used;
}

absl::StatusOr<Tensor> FactoredPiece::Reproject(int replica) {
  Own& own = own_[replica];
  ASSIGN_OR_RETURN(Tensor q, steps_.Reproject(own.message, own.largest, basis_));
  if (own.sender->state() == nullptr) return q;
  ASSIGN_OR_RETURN(const Tensor used, ProductWith(q));
  RETURN_IF_ERROR(own.sender->KeepErrors(own.message, used));
  return q;
}

absl::StatusOr<MeasuredError> FactoredPiece::Measure(int replica, const Tensor& q) {
  const Own& own = own_[replica];
  ASSIGN_OR_RETURN(const Tensor used, ProductWith(q));
  MeasuredError error;
  ASSIGN_OR_RETURN(error.received, MeasureDistortion(own.message, used, shared_->kernels));
  CodecError& of_codec = error.codec.emplace();
  of_codec.relative_error = error.received.relative_error;
  ASSIGN_OR_RETURN(of_codec.relative_residual, own.sender->RelativeResidual(own.message));
  return error;
}

absl::StatusOr<Tensor> FactoredPiece::Finish(const Tensor& sum) {
  const std::shared_ptr<const Carry> carry = PowerIteration::CarryOf(sum);
  for (Own& own : own_) {
    if (own.sender != nullptr) own.sender->set_carry(carry);
  }
  return ProductWith(sum);
}

Message FactorMessage(const MessageKey& key, const Tensor& factor) {
  Message message;
  message.key = key;
  message.shape = factor.shape();
  message.payload = {factor.buffer(), {static_cast<const uint8_t*>(factor.data()), factor.bytes()}};
  return message;
}

absl::StatusOr<Tensor> ReadFactor(const Message& message, const Shape& shape) {
  const absl::Span<const uint8_t> bytes = message.payload.bytes;
  if (message.dtype != DType::kF32 || message.shape != shape || !message.codec.is_exact()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a factor of ", Name(message.dtype), " ", message.shape.ToString(), " with codec ",
        message.codec.ToString(), ", want fp32 ", shape.ToString(), " as it is"));
  }
  if (message.first_visit || message.state_digest) {
    return absl::InvalidArgumentError("first_visit or state_digest of a factor, want neither");
  }
  ASSIGN_OR_RETURN(Tensor factor, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  if (bytes.size() != factor.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a factor of ", bytes.size(), " bytes, want ", factor.bytes()));
  }
  if (!bytes.empty()) std::memcpy(factor.data(), bytes.data(), bytes.size());
  RETURN_IF_ERROR(CheckFinite(factor));
  return factor;
}

absl::Status AddFactor(const Tensor& factor, Tensor* sum) {
  if (sum->empty()) {
    ASSIGN_OR_RETURN(*sum, Tensor::Allocate(CpuDevice(), DType::kF32, factor.shape()));
    std::memcpy(sum->data(), factor.data(), factor.bytes());
    return absl::OkStatus();
  }
  const absl::Span<float> sums = sum->floats();
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += factor.floats()[i];
  return absl::OkStatus();
}

}  // namespace thinwire
