// matmul.h for the emulator: oneDNN's sgemm on one thread, in fp32 whatever the types. bf16 is
// widened before and rounded after. It has no more epilogues than the library.
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "nn/cpu/onednn.h"
#include "nn/cpu/ops.h"
#include "nn/cuda/host_work.h"
#include "nn/cuda/matmul.h"

namespace thinwire::cuda {
namespace {

std::vector<float> Read(Ops* cpu, const void* from, DType type, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  (void)cpu->Convert(ViewOf(from, type, {n}), ViewOf(values.data(), DType::kF32, {n}));
  return values;
}

// Applies the epilogue to n elements of a product.
Error Finish(Ops* cpu, const MatmulShape& shape, std::vector<float>* product, void* aux) {
  const auto n = static_cast<int64_t>(product->size());
  const TensorView wide = ViewOf(product->data(), DType::kF32, {n});
  if (shape.epilogue == Epilogue::kNone) return Error{};
  if (shape.epilogue == Epilogue::kGelu) return cpu->Apply(Pointwise::kTanhGelu, wide, wide);
  if (shape.epilogue == Epilogue::kGeluAux) {
    RETURN_ERROR(cpu->Convert(wide, ViewOf(aux, shape.product, {n})));
    return cpu->Apply(Pointwise::kTanhGelu, wide, wide);
  }
  std::vector<float> u = Read(cpu, aux, shape.product, n);
  return cpu->ApplyBackward(Pointwise::kTanhGelu, ViewOf(u.data(), DType::kF32, {n}), wide, wide);
}

Error Multiply(Ops* cpu, const MatmulShape& shape, const MatmulOperands& of) {
  const int64_t rows = shape.rows, columns = shape.columns, inner = shape.inner;
  // The last row of a ends with its last factor, whatever the step.
  const int64_t a_rows = shape.transpose_a ? inner : rows;
  const int64_t a_columns = shape.transpose_a ? rows : inner;
  const std::vector<float> wide_a =
      Read(cpu, of.a, shape.factors, (a_rows - 1) * shape.a_step() + a_columns);
  const std::vector<float> wide_b = Read(cpu, of.b, shape.factors, inner * columns);
  std::vector<float> wide_c(static_cast<size_t>(rows * columns));
  if (shape.accumulate) wide_c = Read(cpu, of.c, shape.product, rows * columns);
  if (shape.bias) {
    const std::vector<float> wide_bias = Read(cpu, of.bias, shape.product, columns);
    for (int64_t i = 0; i < rows * columns; ++i) wide_c[i] += wide_bias[i % columns];
  }
  const cpu::ThreadsInForce threads(1);
  const dnnl::status status = dnnl::sgemm(
      shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', rows, columns, inner,
      /*alpha=*/1, wide_a.data(), shape.a_step(), wide_b.data(),
      shape.transpose_b ? inner : columns, /*beta=*/1, wide_c.data(), columns);
  if (status != dnnl::status::success) {
    return MakeError(absl::StatusCode::kInternal, "dnnl::sgemm: status %d",
                     static_cast<int>(status));
  }
  RETURN_ERROR(Finish(cpu, shape, &wide_c, of.aux));
  return cpu->Convert(ViewOf(wide_c.data(), DType::kF32, {rows * columns}),
                      ViewOf(of.c, shape.product, {rows * columns}));
}

// Returns whether the emulator has the epilogue: in bf16, in rows of a multiple of 8. As libraries
// may have one and lack the other, gradients want such rows of a, too.
bool Has(const MatmulShape& shape) {
  if (shape.epilogue == Epilogue::kNone) return true;
  const bool wants_a = shape.epilogue == Epilogue::kGeluGradient;
  return shape.product == DType::kBF16 && shape.columns % 8 == 0 &&
         (!wants_a || shape.a_step() % 8 == 0);
}

class EmulatedMatmul final : public Matmul {
 public:
  explicit EmulatedMatmul(CudaDevice* device) : work_(device), cpu_(NewCpuOps(1)) {}

  Error Run(const MatmulShape& shape, const MatmulOperands& operands) override {
    if (!Has(shape)) {
      return MakeError(absl::StatusCode::kUnimplemented,
                       "an epilogue for %s in rows of %lld of rows of %lld, want bf16 in rows of a "
                       "multiple of 8",
                       Name(shape.product), static_cast<long long>(shape.columns),
                       static_cast<long long>(shape.a_step()));
    }
    return work_.Submit(
        [cpu = cpu_, shape, operands] { return Multiply(cpu.get(), shape, operands); });
  }

 private:
  HostWork work_;
  const std::shared_ptr<Ops> cpu_;
};

}  // namespace

std::unique_ptr<Matmul> NewMatmul(CudaDevice* device, const OpsOptions&) {
  return std::make_unique<EmulatedMatmul>(device);
}

}  // namespace thinwire::cuda
