#include <cassert>
#include <memory>

#include "nn/cuda/joined_work.h"
#include "nn/cuda/kernels.h"
#include "nn/cuda/preparation.h"
#include "nn/cuda/weighted.h"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {
namespace {

constexpr int64_t kRowStep = 64;

class MatmulLinear final : public Linear {
 public:
  MatmulLinear(CudaDevice* device, const LinearSpec& spec, Matmul* matmul, JoinedWork* joined)
      : device_(device),
        spec_(spec),
        matmul_(matmul),
        joined_(joined),
        weights_(device),
        bias_(device) {}

  // Weights that are not borrowed have memory here. Those of longer rows are followed by rows of
  // zeros, and the bias by zeros; these are never overwritten.
  Error Reserve() {
    const int64_t row = spec_.row_of_y();
    const size_t of_element = SizeOf(spec_.compute);
    if (!spec_.borrows_weights) {
      RETURN_ERROR(
          ReserveZeros(static_cast<size_t>(row * spec_.in_features) * of_element, &weights_));
    }
    return ReserveZeros(static_cast<size_t>(row) * of_element, &bias_);
  }

  // Makes copies in the compute type. In bf16 this rounds the bias, too; cuBLASLt adds it in y's
  // type to sums that are still fp32. fp32 weights are copied for their alignment.
  Error LoadWeights(const float* weights, const float* bias) override {
    assert(spec_.bias == (bias != nullptr));
    if (!spec_.borrows_weights) {
      RETURN_ERROR(joined_->filters.Pack({spec_.out_features, spec_.in_features}, weights,
                                         spec_.compute, weights_.as<void>()));
    }
    if (!spec_.bias) return Error{};
    return joined_->filters.Pack({1, spec_.out_features}, bias, spec_.compute, bias_.as<void>());
  }

  Error UseWeights(const void* weights) override {
    borrowed_ = weights;
    return Error{};
  }

  NarrowCopies narrow_copies() const override {
    if (spec_.compute != DType::kBF16) return {};
    return {spec_.borrows_weights ? nullptr : weights_.as<uint16_t>(),
            spec_.bias ? bias_.as<uint16_t>() : nullptr};
  }

  // Computes y = x W^T + b.
  Error Forward(const TensorView& x, const TensorView& y) override {
    RETURN_ERROR(joined_->filters.FinishPacks());
    return matmul_->Run(ForwardShape(x), {x.data, Weights(), y.data, BiasOrNull()});
  }

  // Computes dx = dy W.
  Error BackwardData(const TensorView& dy, const TensorView& dx) override {
    RETURN_ERROR(joined_->filters.FinishPacks());
    return matmul_->Run(BackwardShape(dy), {dy.data, Weights(), dx.data});
  }

  // The product applies GELU, where the library has that, else a kernel behind it.
  Error ForwardGelu(const TensorView& x, const TensorView& u, const TensorView& y) override {
    RETURN_ERROR(joined_->filters.FinishPacks());
    MatmulShape shape = ForwardShape(x);
    shape.epilogue = u.data != nullptr ? Epilogue::kGeluAux : Epilogue::kGelu;
    const Error error = matmul_->Run(shape, {x.data, Weights(), y.data, BiasOrNull(), u.data});
    if (!IsUnimplemented(error)) return error;
    const TensorView& product = u.data != nullptr ? u : y;
    RETURN_ERROR(Forward(x, product));
    return Apply(device_, Pointwise::kTanhGelu, product, y);
  }
  Error BackwardGelu(const TensorView& dy, const TensorView& u, const TensorView& du) override {
    RETURN_ERROR(joined_->filters.FinishPacks());
    MatmulShape shape = BackwardShape(dy);
    shape.epilogue = Epilogue::kGeluGradient;
    const Error error = matmul_->Run(shape, {dy.data, Weights(), du.data, nullptr, u.data});
    if (!IsUnimplemented(error)) return error;
    RETURN_ERROR(BackwardData(dy, du));
    return ApplyBackward(device_, Pointwise::kTanhGelu, u, du, du);
  }

  // Computes dW += dy^T x.
  Error BackwardWeights(const TensorView& x, const TensorView& dy, float* weights_gradient,
                        float* bias_gradient) override {
    assert(spec_.bias == (bias_gradient != nullptr));
    // First whole steps of rows, for which cuBLAS has fast kernels, then the rest.
    const int64_t whole = spec_.out_features / kRowStep * kRowStep;
    RETURN_ERROR(AddProducts(x, dy, 0, whole, weights_gradient));
    RETURN_ERROR(AddProducts(x, dy, whole, spec_.out_features - whole, weights_gradient));
    return spec_.bias
               ? AddColumnSums(device_, dy, spec_.out_features, &joined_->sums, bias_gradient)
               : Error{};
  }

 private:
  MatmulShape ForwardShape(const TensorView& x) const {
    MatmulShape shape = Shape(x.dims[0], spec_.row_of_y(), spec_.in_features);
    shape.transpose_b = true;
    shape.bias = spec_.bias;
    return shape;
  }
  MatmulShape BackwardShape(const TensorView& dy) const {
    return Shape(dy.dims[0], spec_.in_features, spec_.row_of_y());
  }
  const void* Weights() const { return spec_.borrows_weights ? borrowed_ : weights_.as<void>(); }
  const void* BiasOrNull() const { return spec_.bias ? bias_.as<void>() : nullptr; }
  // Computes `rows` rows of dW from `first` on.
  Error AddProducts(const TensorView& x, const TensorView& dy, int64_t first, int64_t rows,
                    float* weights_gradient) {
    if (rows == 0) return Error{};
    MatmulShape shape = Shape(rows, spec_.in_features, x.dims[0]);
    shape.transpose_a = true;
    shape.row_of_a = spec_.row_of_y();
    shape.accumulate = true;
    shape.product = DType::kF32;
    const auto offset = first * static_cast<int64_t>(SizeOf(dy.dtype));
    return matmul_->Run(shape, {static_cast<const char*>(dy.data) + offset, x.data,
                                weights_gradient + first * spec_.in_features});
  }
  Error ReserveZeros(size_t bytes, CudaScratch* memory) const {
    RETURN_ERROR(memory->Reserve(bytes));
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemsetAsync(memory->as<void>(), 0, bytes, stream));
    return Error{};
  }
  MatmulShape Shape(int64_t rows, int64_t columns, int64_t inner) const {
    MatmulShape shape;
    shape.rows = rows;
    shape.columns = columns;
    shape.inner = inner;
    shape.factors = shape.product = spec_.compute;
    return shape;
  }

  CudaDevice* const device_;
  const LinearSpec spec_;
  Matmul* const matmul_;
  JoinedWork* const joined_;
  CudaScratch weights_, bias_;
  const void* borrowed_ = nullptr;  // UseWeights
};

}  // namespace

Error NewLinear(CudaDevice* device, const LinearSpec& spec, Matmul* matmul, JoinedWork* joined,
                Linear** linear) {
  auto made = std::make_unique<MatmulLinear>(device, spec, matmul, joined);
  RETURN_ERROR(made->Reserve());
  *linear = made.release();
  return Error{};
}

}  // namespace thinwire::cuda
