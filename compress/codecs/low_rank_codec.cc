#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/power_iteration.h"
#include "compress/codecs/stack.h"
#include "compress/cpu/orthonormal.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/low_rank_matrices.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// Factor Q at which the last message's power iteration ended: fp32 [columns, rank], or [samples,
// columns, rank] with per_sample, in host memory.
class Factor final : public Carry {
 public:
  explicit Factor(Tensor q) : q_(std::move(q)) {}

  const Tensor& q() const { return q_; }

  std::vector<StoredTensor> Parts() const override {
    const Shape& shape = q_.shape();
    return {{kPart,
             "F32",
             {shape.begin(), shape.end()},
             {static_cast<const char*>(q_.data()), q_.bytes()}}};
  }

  static constexpr char kPart[] = "warm_start";

 private:
  const Tensor q_;
};

class LowRankCodec final : public Codec {
 public:
  LowRankCodec(const CodecSpec& spec, CodecKernels* kernels) : Codec(spec), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType dtype) const override {
    return CodecMaxPayloadBytes(spec(), shape, dtype);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    const LowRankMatrices matrices = LowRankMatricesOf(x.shape(), spec());
    const Tensor* const before = FittingFactor(context.carry, matrices);
    KernelContext kernel_context;
    std::vector<float> padded;
    if (before != nullptr) kernel_context.warm_start = StartOf(*before, matrices, &padded);
    size_t bytes = 0;
    RETURN_IF_ERROR(ToStatus(kernels_->Encode(spec(), x.view(), kernel_context,
                                              {payload.data(), payload.size(), &bytes})));
    if (context.next_carry != nullptr) {
      ASSIGN_OR_RETURN(*context.next_carry, FactorIn(payload.data(), matrices, before));
    }
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& /*context*/,
                      Tensor* x) const override {
    return ToStatus(kernels_->Decode({payload.data(), payload.size()}, spec(), {}, x->view()));
  }

  absl::StatusOr<std::shared_ptr<const Carry>> ReadCarry(absl::Span<const StoredTensor> parts,
                                                         const Shape& /*sample*/,
                                                         Device* /*device*/) const override {
    const StoredTensor& stored = parts[0];
    if (parts.size() != 1 || stored.name != Factor::kPart || stored.dtype != "F32" ||
        stored.shape.empty() || stored.shape.size() > Shape::kMaxRank) {
      return RefuseParts(parts);
    }
    Shape shape;
    for (const int64_t extent : stored.shape) shape.Append(extent);
    ASSIGN_OR_RETURN(Tensor q, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
    if (!stored.data.empty()) std::memcpy(q.data(), stored.data.data(), stored.data.size());
    for (const float value : q.floats()) {
      if (std::isfinite(value)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("state: ", stored.name, " has ", value, ", want finite numbers"));
    }
    return std::make_shared<Factor>(std::move(q));
  }

 private:
  Shape FactorShape(int64_t samples, const LowRankMatrices& matrices) const {
    if (spec().per_sample) return {samples, matrices.columns, matrices.rank};
    return {matrices.columns, matrices.rank};
  }

  // Returns the factor that was left, for any number of samples; null if it is none of such
  // matrices.
  const Tensor* FittingFactor(const Carry* carry, const LowRankMatrices& matrices) const {
    const auto* const factor = dynamic_cast<const Factor*>(carry);
    if (factor == nullptr || factor->q().bytes() == 0) return nullptr;
    const Shape& shape = factor->q().shape();
    return shape == FactorShape(shape[0], matrices) ? &factor->q() : nullptr;
  }

  // Returns a factor for each matrix: the memory of `before` if that has as many, otherwise a copy
  // in *padded, with zeros for the missing ones, which start afresh.
  const float* StartOf(const Tensor& before, const LowRankMatrices& matrices,
                       std::vector<float>* padded) const {
    const absl::Span<const float> factors = before.floats();
    const size_t want = FactorShape(matrices.count, matrices).elements();
    if (factors.size() >= want) return factors.data();
    padded->assign(factors.begin(), factors.end());
    padded->resize(want);
    return padded->data();
  }

  // Returns the factors of a payload, and behind them those of later samples that only `before`
  // has: a message of few samples must not forget any. Null for a message without matrices.
  absl::StatusOr<std::shared_ptr<const Carry>> FactorIn(const uint8_t* payload,
                                                        const LowRankMatrices& matrices,
                                                        const Tensor* before) const {
    if (matrices.count == 0) return nullptr;
    const int64_t known = before != nullptr ? before->shape()[0] : 0;
    const Shape shape = FactorShape(std::max(matrices.count, known), matrices);
    ASSIGN_OR_RETURN(Tensor q, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
    if (before != nullptr) std::memcpy(q.data(), before->data(), before->bytes());
    const size_t q_bytes = 4 * matrices.q_floats();
    for (int64_t i = 0; i < matrices.count; ++i) {
      const uint8_t* const end = payload + (i + 1) * matrices.payload_bytes();
      std::memcpy(static_cast<uint8_t*>(q.data()) + i * q_bytes, end - q_bytes, q_bytes);
    }
    return std::make_shared<Factor>(std::move(q));
  }

  CodecKernels* kernels_;
};

}  // namespace

PowerIteration::PowerIteration(const CodecSpec& spec, const Shape& shape, CodecKernels* kernels)
    : spec_(spec), kernels_(kernels) {
  const LowRankMatrices matrix = LowRankMatricesOf(shape, spec);
  p_shape_ = {matrix.rows, matrix.rank};
  q_shape_ = {matrix.columns, matrix.rank};
}

absl::StatusOr<Tensor> PowerIteration::Project(const Tensor& x, const Carry* carry,
                                               float* largest) const {
  const auto* const factor = dynamic_cast<const Factor*>(carry);
  const bool fits = factor != nullptr && factor->q().shape() == q_shape_;
  ASSIGN_OR_RETURN(Tensor p, Tensor::Allocate(CpuDevice(), DType::kF32, p_shape_));
  const float* const start = fits ? factor->q().floats().data() : nullptr;
  RETURN_IF_ERROR(ToStatus(kernels_->Project(spec_, x.view(), start, p.floats().data(), largest)));
  return p;
}

void PowerIteration::Orthonormalise(const Tensor& p) const {
  const auto rows = static_cast<size_t>(p_shape_[0]), rank = static_cast<size_t>(p_shape_[1]);
  const absl::Span<float> values = p.floats();
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  const float lift = LowRankLift(BitsOf(largest));
  std::vector<float> columns(values.size());
  for (size_t i = 0; i < values.size(); ++i) columns[i % rank * rows + i / rank] = values[i] * lift;
  thinwire::Orthonormalise(columns.data(), rows, rank);
  for (size_t i = 0; i < values.size(); ++i) values[i] = columns[i % rank * rows + i / rank];
}

absl::StatusOr<Tensor> PowerIteration::Reproject(const Tensor& x, float largest,
                                                 const Tensor& p) const {
  ASSIGN_OR_RETURN(Tensor q, Tensor::Allocate(CpuDevice(), DType::kF32, q_shape_));
  RETURN_IF_ERROR(ToStatus(
      kernels_->Reproject(spec_, x.view(), largest, p.floats().data(), q.floats().data())));
  return q;
}

absl::Status PowerIteration::Multiply(const Tensor& p, const Tensor& q, const Tensor& x) const {
  std::vector<uint8_t> payload(p.bytes() + q.bytes());
  std::memcpy(payload.data(), p.data(), p.bytes());
  std::memcpy(payload.data() + p.bytes(), q.data(), q.bytes());
  return ToStatus(kernels_->Decode({payload.data(), payload.size()}, spec_, {}, x.view()));
}

std::shared_ptr<const Carry> PowerIteration::CarryOf(Tensor q) {
  return std::make_shared<Factor>(std::move(q));
}

std::unique_ptr<Codec> NewLowRankCodec(const CodecSpec& spec, CodecKernels* kernels) {
  return std::make_unique<LowRankCodec>(spec, kernels);
}

}  // namespace thinwire
