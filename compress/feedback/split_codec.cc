#include "compress/feedback/split_codec.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/codecs/new_codec.h"

namespace thinwire {

absl::Status SplitCodec::UseHalvesOf(const CodecSpec& codec, const Shape& shape) {
  ASSIGN_OR_RETURN(const Halves halves, HalvesOf(codec, shape));
  if (x_codec_ == nullptr || x_codec_->spec() != halves.x || e_codec_->spec() != halves.e) {
    ASSIGN_OR_RETURN(x_codec_, NewCodec(halves.x, kernels_));
    ASSIGN_OR_RETURN(e_codec_, NewCodec(halves.e, kernels_));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> SplitCodec::Encode(const CodecSpec& codec, const Tensor& x, const Tensor& e,
                                          const MessageContext& context,
                                          absl::Span<uint8_t> payload) {
  RETURN_IF_ERROR(UseHalvesOf(codec, x.shape()));
  if (payload.size() < kSplitHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("ef_mixed_b: payload memory of ", payload.size(),
                                                   " bytes, want at least ", kSplitHeaderBytes));
  }
  const absl::Span<uint8_t> x_part = payload.subspan(kSplitHeaderBytes);
  ASSIGN_OR_RETURN(const size_t x_bytes, x_codec_->Encode(x, context, x_part));
  const uint64_t length = x_bytes;
  std::memcpy(payload.data(), &length, kSplitHeaderBytes);
  MessageContext e_context = context;
  e_context.random_key = RandomKey(context.random_key, 1);  // other draws of randomk
  ASSIGN_OR_RETURN(const size_t e_bytes, e_codec_->Encode(e, e_context, x_part.subspan(x_bytes)));
  return kSplitHeaderBytes + x_bytes + e_bytes;
}

absl::Status SplitCodec::Decode(const CodecSpec& codec, absl::Span<const uint8_t> payload,
                                const MessageContext& context, Tensor* sum) {
  RETURN_IF_ERROR(UseHalvesOf(codec, sum->shape()));
  uint64_t x_bytes = 0;
  if (payload.size() >= kSplitHeaderBytes) {
    std::memcpy(&x_bytes, payload.data(), kSplitHeaderBytes);
  }
  if (payload.size() < kSplitHeaderBytes || x_bytes > payload.size() - kSplitHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("ef_mixed_b: payload of ", payload.size(),
                                                   " bytes, want ", kSplitHeaderBytes, " and ",
                                                   x_bytes, " for the first part"));
  }
  const absl::Span<const uint8_t> parts = payload.subspan(kSplitHeaderBytes);
  ASSIGN_OR_RETURN(Tensor x, x_memory_.Get(sum->device(), DType::kF32, sum->shape()));
  ASSIGN_OR_RETURN(Tensor e, e_memory_.Get(sum->device(), DType::kF32, sum->shape()));
  RETURN_IF_ERROR(x_codec_->Decode(parts.subspan(0, x_bytes), context, &x));
  RETURN_IF_ERROR(e_codec_->Decode(parts.subspan(x_bytes), context, &e));
  return ToStatus(kernels_->Combine(1, x.view(), 1, e.view(), sum->view()));
}

}  // namespace thinwire
