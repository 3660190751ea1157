#include "compress/feedback/plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/checks/distortion.h"
#include "compress/codec_table.h"
#include "compress/codecs/new_codec.h"
#include "compress/feedback/state_store.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

template <typename... Parts>
absl::Status Refuse(const FeedbackSpec& spec, const CodecSpec& codec, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("feedback ", Name(spec.kind), " with codec ", codec.ToString(), ": ", parts...));
}

absl::Status CheckUnbiased(const FeedbackSpec& spec, const CodecSpec& codec) {
  if (codec.ratio == 0) {
    return Refuse(spec, codec, "its contraction, 2 - n / k, is not known before a message, want a ",
                  "ratio or unbiased false");
  }
  // E ||C(x) - x||^2 = (n / K - 1) ||x||^2.
  const double kept = spec.kind == FeedbackKind::kSplit ? codec.ratio / 2 : codec.ratio;
  const double contraction = 2 - 1 / kept;
  if (contraction > 0) return absl::OkStatus();
  return Refuse(spec, codec, "its contraction is ", contraction,
                ", want more than 0: a larger ratio or unbiased false");
}

absl::Status CheckSplit(const FeedbackSpec& spec, const CodecSpec& codec) {
  if (!CodecRowOf(codec.kind).has(CodecRow::kKept) && !IsLossless(codec)) {
    return Refuse(spec, codec, "its budget cannot be halved, want topk or randomk");
  }
  if (codec.k == 1) return Refuse(spec, codec, "k is 1, want at least 2 to halve");
  return absl::OkStatus();
}

}  // namespace

bool IsLossless(const CodecSpec& codec) {
  return CodecRowOf(codec.kind).is_lossless && !codec.needs_support();
}

absl::Status CheckFeedbackOf(const FeedbackSpec& spec, const CodecSpec& codec) {
  if (spec.kind == FeedbackKind::kNone) return absl::OkStatus();
  if (codec.unbiased) RETURN_IF_ERROR(CheckUnbiased(spec, codec));
  if (codec.needs_support()) {
    return Refuse(spec, codec,
                  "what lies outside the support is never sent and only adds up in the state, "
                  "want indices own and support all");
  }
  return spec.kind == FeedbackKind::kSplit ? CheckSplit(spec, codec) : absl::OkStatus();
}

absl::StatusOr<double> MeasureContraction(const Codec& codec, const Shape& shape, Device* device,
                                          CodecKernels* kernels) {
  if (codec.spec().needs_support()) {
    return absl::InvalidArgumentError(
        absl::StrCat("contraction of ", codec.spec().ToString(), ": it depends on the support"));
  }
  std::vector<float> values(shape.elements());
  RandomStream random(RandomKey(1, "contraction"));
  for (float& value : values) {
    value = -6;
    for (int i = 0; i < 12; ++i) value += random.NextFloat();
  }
  ASSIGN_OR_RETURN(const Tensor x, Tensor::Allocate(device, DType::kF32, shape));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(x.data(), values.data(), x.bytes())));
  std::vector<uint8_t> payload(codec.MaxPayloadBytes(shape, DType::kF32));
  MessageContext context;
  context.random_key = RandomKey(1, "contraction rounding");
  std::shared_ptr<const Carry> next;
  context.next_carry = &next;
  ASSIGN_OR_RETURN(const size_t bytes, codec.Encode(x, context, absl::MakeSpan(payload)));
  ASSIGN_OR_RETURN(Tensor decoded, Tensor::Allocate(device, DType::kF32, shape));
  RETURN_IF_ERROR(codec.Decode(absl::MakeConstSpan(payload).subspan(0, bytes), context, &decoded));
  ASSIGN_OR_RETURN(const Distortion distortion, MeasureDistortion(x, decoded, kernels));
  return 1 - distortion.relative_error * distortion.relative_error;
}

StateBytes StateBytesOf(const FeedbackSpec& spec, const Shape& sample, uint64_t num_rows) {
  if (spec.kind == FeedbackKind::kNone) return {};
  const uint64_t row_bytes = StoredRowBytes(spec.store, sample.elements());
  if (spec.limit_bytes > 0) {
    num_rows = std::min(num_rows, spec.limit_bytes / std::max<uint64_t>(row_bytes, 1));
  }
  const uint64_t bytes = row_bytes * num_rows;
  return {bytes, spec.kind == FeedbackKind::kEf21 ? bytes : 0};
}

absl::StatusOr<size_t> CompensatedMaxPayloadBytes(const FeedbackSpec& spec, const CodecSpec& codec,
                                                  const Shape& shape, DType compute) {
  const auto most = [&](const CodecSpec& part, DType dtype) -> absl::StatusOr<size_t> {
    // The bound of a codec needs no kernels.
    ASSIGN_OR_RETURN(const std::unique_ptr<Codec> bound, NewCodec(part, /*kernels=*/nullptr));
    return bound->MaxPayloadBytes(shape, dtype);
  };
  if (spec.kind == FeedbackKind::kNone || IsLossless(codec)) return most(codec, compute);
  if (spec.kind != FeedbackKind::kSplit) return most(codec, DType::kF32);
  ASSIGN_OR_RETURN(const Halves halves, HalvesOf(codec, shape));
  ASSIGN_OR_RETURN(const size_t of_x, most(halves.x, DType::kF32));
  ASSIGN_OR_RETURN(const size_t of_e, most(halves.e, DType::kF32));
  return kSplitHeaderBytes + of_x + of_e;
}

size_t FeedbackMaxPayloadBytes(const FeedbackSpec& spec, const Codec& codec, const Shape& shape,
                               DType compute) {
  // Compensated messages are fp32, and neither half of a budget takes more than the whole.
  size_t most = codec.MaxPayloadBytes(shape, DType::kF32);
  if (spec.kind == FeedbackKind::kSplit) most = kSplitHeaderBytes + 2 * most;
  return std::max(
      {most, codec.MaxPayloadBytes(shape, compute), CastPayloadBytes(compute, shape.elements())});
}

absl::StatusOr<Halves> HalvesOf(const CodecSpec& codec, const Shape& shape) {
  const int64_t elements = ScopesOf(shape, codec.scope, codec.group).elements;
  // An empty tensor keeps nothing of any k.
  const uint64_t k = elements > 0 ? NumKept(codec, elements) : 2;
  if (k < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        Name(FeedbackKind::kSplit), ": codec ", codec.ToString(), " keeps ", k, " of the ",
        elements, " elements of a scope of ", shape.ToString(), ", want at least 2 to halve"));
  }
  Halves halves{codec, codec};
  halves.x.ratio = halves.e.ratio = 0;
  halves.x.count = halves.e.count = Count::kCeil;
  halves.e.k = k / 2;
  halves.x.k = k - halves.e.k;
  return halves;
}

}  // namespace thinwire
