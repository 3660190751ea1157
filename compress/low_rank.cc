#include "compress/low_rank.h"

#include <cstring>
#include <vector>

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
    const MatrixView view = MatricesOf(x.shape(), spec().per_sample);
    std::vector<float> padded;
    const float* const start = StartOf(view, context.warm_start, &padded);
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(
        kernels_->LowRankEncode(x.view(), spec(), start, payload.data(), payload.size(), &bytes)));
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
    ASSIGN_OR_RETURN(Tensor q,
                     Tensor::Allocate(CpuDevice(), DType::kF32, StartShape(view.count, view)));
    const size_t p_bytes = 4 * view.rows * spec().rank;
    const size_t q_bytes = 4 * view.columns * spec().rank;
    for (int64_t i = 0; i < view.count; ++i) {
      std::memcpy(static_cast<uint8_t*>(q.data()) + i * q_bytes,
                  payload.data() + i * (p_bytes + q_bytes) + p_bytes, q_bytes);
    }
    return q;
  }

 private:
  Shape StartShape(int64_t count, const MatrixView& view) const {
    if (spec().per_sample) return {count, view.columns, spec().rank};
    return {view.columns, spec().rank};
  }
  // A factor for each matrix, or null: `warm_start` where it has as many, else a copy in *padded
  // with zeros behind, which start afresh.
  const float* StartOf(const MatrixView& view, const Tensor* warm_start,
                       std::vector<float>* padded) const {
    if (warm_start == nullptr || warm_start->empty() || warm_start->dtype() != DType::kF32 ||
        !warm_start->device()->is_host() || warm_start->shape().rank() == 0 ||
        warm_start->shape() != StartShape(warm_start->shape()[0], view)) {
      return nullptr;
    }
    const absl::Span<const float> factors = warm_start->floats();
    const size_t want = StartShape(view.count, view).elements();
    if (factors.size() >= want) return factors.data();
    padded->assign(factors.begin(), factors.end());
    padded->resize(want);
    return padded->data();
  }

  CodecKernels* kernels_;
};

}  // namespace

std::unique_ptr<Codec> NewLowRankCodec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<LowRankCodec>(spec, kernels);
}

}  // namespace thinwire
