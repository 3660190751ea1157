#include "stage_server/stash/coded_tensor.h"

#include <cstring>
#include <memory>
#include <utility>

#include "base/status.h"
#include "compress/codecs/new_codec.h"

namespace thinwire {
namespace {

// Returns the first `bytes` of memory that was allocated for the longest payload, in memory of
// their size.
absl::StatusOr<std::shared_ptr<Buffer>> Trimmed(const Buffer& longest, size_t bytes) {
  ASSIGN_OR_RETURN(auto copy, Buffer::Allocate(longest.device(), bytes));
  std::memcpy(copy->data(), longest.data(), bytes);
  return copy;
}

}  // namespace

absl::StatusOr<CodedTensor> CodedTensor::Of(const Tensor& x, bool keeps_signs, uint64_t random_key,
                                            const TensorCoding& coding) {
  CodedTensor coded(x);
  if (!keeps_signs) {
    RETURN_IF_ERROR(coded.Encode(x, random_key, coding));
    return coded;
  }
  ASSIGN_OR_RETURN(coded.support_, SupportMap::Of(x, coding.kernels));
  const SupportView support = coded.support_->view();
  if (support.count == 0) return coded;
  ASSIGN_OR_RETURN(const Tensor compact,
                   Tensor::Allocate(x.device(), x.dtype(), {1, support.count}));
  RETURN_IF_ERROR(ToStatus(coding.kernels->Compact(x.view(), support, compact.view())));
  RETURN_IF_ERROR(coded.Encode(compact, random_key, coding));
  return coded;
}

absl::Status CodedTensor::Encode(const Tensor& x, uint64_t random_key, const TensorCoding& coding) {
  const size_t longest = coding.codec->MaxPayloadBytes(x.shape(), x.dtype());
  const bool stays = !device_->is_host() && 2 * longest <= x.bytes() &&
                     CodesOnDevice(coding.codec->spec(), *coding.kernels);
  MessageContext context;
  context.random_key = random_key;
  context.payload_is_on_device = stays;
  ASSIGN_OR_RETURN(memory_, Buffer::Allocate(stays ? device_ : device_->host(), longest));
  auto* const data = static_cast<uint8_t*>(memory_->data());
  ASSIGN_OR_RETURN(payload_bytes_, coding.codec->Encode(x, context, absl::MakeSpan(data, longest)));
  if (!stays && payload_bytes_ < longest && payload_bytes_ > 0) {
    ASSIGN_OR_RETURN(memory_, Trimmed(*memory_, payload_bytes_));
  }
  return absl::OkStatus();
}

absl::Status CodedTensor::DecodeTo(const TensorCoding& coding, Tensor* x) const {
  MessageContext context;
  context.payload_is_on_device = !memory_->device()->is_host();
  const auto* const data = static_cast<const uint8_t*>(memory_->data());
  return coding.codec->Decode({data, payload_bytes_}, context, x);
}

absl::StatusOr<Tensor> CodedTensor::Decode(const TensorCoding& coding) const {
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(device_, dtype_, shape_));
  if (!support_) {
    RETURN_IF_ERROR(DecodeTo(coding, &x));
    return x;
  }
  const SupportView support = support_->view();
  ASSIGN_OR_RETURN(Tensor compact, Tensor::Allocate(device_, dtype_, {1, support.count}));
  if (support.count > 0) RETURN_IF_ERROR(DecodeTo(coding, &compact));
  RETURN_IF_ERROR(ToStatus(coding.kernels->Expand(compact.view(), support, x.view())));
  return x;
}

size_t CodedTensor::bytes() const {
  const size_t of_support = support_ ? 8 * ((support_->elements() + 63) / 64) : 0;
  return of_support + (memory_ != nullptr ? payload_bytes_ : 0);
}

}  // namespace thinwire
