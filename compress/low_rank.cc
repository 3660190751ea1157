#include "compress/low_rank.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/layout.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

class LowRankCodec final : public Codec {
 public:
  LowRankCodec(const CodecSpec& spec, CodecKernels* kernels) : Codec(spec), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType /*dtype*/) const override {
    return LowRankPayloadBytes(spec(), MatricesOf(shape, spec().per_sample));
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    const Tensor* start = context.warm_start;
    const bool fits = start != nullptr && !start->empty() && start->dtype() == DType::kF32 &&
                      start->device()->is_host() && start->shape() == StartShape(x.shape());
    size_t bytes = 0;
    RETURN_IF_ERROR(
        ToStatus(kernels_->LowRankEncode(x.view(), spec(), fits ? start->floats().data() : nullptr,
                                         payload.data(), payload.size(), &bytes)));
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& /*context*/,
                      Tensor* x) const override {
    return ToStatus(kernels_->LowRankDecode(payload.data(), payload.size(), spec(), x->view()));
  }

  absl::StatusOr<Tensor> WarmStart(absl::Span<const uint8_t> payload,
                                   const Shape& shape) const override {
    const MatrixView view = MatricesOf(shape, spec().per_sample);
    const size_t want = LowRankPayloadBytes(spec(), view);
    if (payload.size() != want) {
      return absl::InvalidArgumentError(
          absl::StrCat("low_rank: payload of ", payload.size(), " bytes, want ", want));
    }
    if (view.count == 0) return Tensor();
    ASSIGN_OR_RETURN(Tensor q, Tensor::Allocate(CpuDevice(), DType::kF32, StartShape(shape)));
    const size_t p_bytes = 4 * view.rows * spec().rank;
    const size_t q_bytes = 4 * view.columns * spec().rank;
    for (int64_t i = 0; i < view.count; ++i) {
      std::memcpy(static_cast<uint8_t*>(q.data()) + i * q_bytes,
                  payload.data() + i * (p_bytes + q_bytes) + p_bytes, q_bytes);
    }
    return q;
  }

 private:
  Shape StartShape(const Shape& shape) const {
    const MatrixView view = MatricesOf(shape, spec().per_sample);
    if (spec().per_sample) return {view.count, view.columns, spec().rank};
    return {view.columns, spec().rank};
  }

  CodecKernels* kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewLowRankCodec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<LowRankCodec>(spec, kernels);
}

}  // namespace thinwire
