#include "compress/codecs/warm_start.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/layout.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

Shape FactorShape(const CodecSpec& spec, int64_t count, const MatrixView& view) {
  if (spec.per_sample) return {count, view.columns, spec.rank};
  return {view.columns, spec.rank};
}

}  // namespace

absl::StatusOr<Tensor> WarmStartOf(const CodecSpec& spec, absl::Span<const uint8_t> payload,
                                   const Shape& shape) {
  const MatrixView view = MatricesOf(shape, spec.per_sample);
  const size_t want = LowRankPayloadBytes(spec, view);
  if (payload.size() != want) {
    return absl::InvalidArgumentError(
        absl::StrCat("low_rank: payload of ", payload.size(), " bytes, want ", want));
  }
  if (view.count == 0) return Tensor();
  ASSIGN_OR_RETURN(Tensor q,
                   Tensor::Allocate(CpuDevice(), DType::kF32, FactorShape(spec, view.count, view)));
  const size_t p_bytes = 4 * view.rows * spec.rank;
  const size_t q_bytes = 4 * view.columns * spec.rank;
  for (int64_t i = 0; i < view.count; ++i) {
    std::memcpy(static_cast<uint8_t*>(q.data()) + i * q_bytes,
                payload.data() + i * (p_bytes + q_bytes) + p_bytes, q_bytes);
  }
  return q;
}

const float* WarmStartFor(const CodecSpec& spec, const Shape& shape, const Tensor& warm_start,
                          std::vector<float>* padded) {
  if (!CodecRowOf(spec.kind).leaves_factor || warm_start.empty() ||
      warm_start.dtype() != DType::kF32 || !warm_start.device()->is_host() ||
      warm_start.shape().rank() == 0) {
    return nullptr;
  }
  const MatrixView view = MatricesOf(shape, spec.per_sample);
  if (warm_start.shape() != FactorShape(spec, warm_start.shape()[0], view)) return nullptr;
  const absl::Span<const float> factors = warm_start.floats();
  const size_t want = FactorShape(spec, view.count, view).elements();
  if (factors.size() >= want) return factors.data();
  padded->assign(factors.begin(), factors.end());
  padded->resize(want);
  return padded->data();
}

}  // namespace thinwire
