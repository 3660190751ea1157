// matmul.h by cuBLASLt.
//
// cuBLASLt is column-major: memory of a row-major [r, c] is for it a column-major [c, r], the
// transpose. So it is asked for c^T = op(b)^T op(a)^T. Its A is our b, its B our a, and its D our c
// as [columns, rows]. What is (not) transposed for us is (not) transposed for it. Its bias belongs
// to rows of D, which are our columns.
#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "nn/cuda/cublaslt.h"
#include "nn/cuda/matmul.h"
#include "nn/cuda/workspace.h"

namespace thinwire::cuda {
namespace {

// Size that NVIDIA advises for Hopper.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;

using Layout = CublasOwned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = CublasOwned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = CublasOwned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// A product that is ready to run.
struct Prepared {
  Description description;
  Layout a, b, c;  // as we name them, not cuBLASLt
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace_bytes = 0;
};

// Returns the alignment of all three pointers in bytes: the lowest bit set in any of them. It is at
// most 16, which is all that the fastest kernels want. Better aligned memory must not be multiplied
// differently. x & ~(x - 1) isolates the lowest set bit of x.
uint32_t AlignmentOf(const void* a, const void* b, const void* c) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
                            reinterpret_cast<uintptr_t>(c) | 16;
  return static_cast<uint32_t>(address & ~(address - 1));
}

template <typename T>
cublasStatus_t Set(const Description& description, cublasLtMatmulDescAttributes_t name,
                   const T& value) {
  return cublasLtMatmulDescSetAttribute(description.get(), name, &value, sizeof(value));
}
template <typename T>
cublasStatus_t Set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t name,
                   const T& value) {
  return cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof(value));
}

// Describes a row-major [rows, columns] whose rows begin `step` elements apart.
cublasStatus_t Describe(DType type, int64_t rows, int64_t columns, int64_t step, Layout* layout) {
  return cublasLtMatrixLayoutCreate(layout->put(), CudaType(type), static_cast<uint64_t>(columns),
                                    static_cast<uint64_t>(rows), step);
}

class CublasMatmul final : public Matmul {
 public:
  CublasMatmul(CudaDevice* device, const OpsOptions& options)
      : device_(device), options_(options) {}

  Error Run(const MatmulShape& shape, const void* a, const void* b, const void* bias,
            void* c) override {
    if (shape.rows == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));  // makes the device current
    if (handle_.get() == nullptr) CUBLAS_RETURN_IF_ERROR(cublasLtCreate(handle_.put()));
    const uint32_t alignment = AlignmentOf(a, b, c);
    std::unique_ptr<Prepared>& prepared = prepared_[KeyOf(shape, alignment)];
    if (prepared == nullptr) {
      auto fresh = std::make_unique<Prepared>();
      RETURN_ERROR(Prepare(shape, alignment, bias, fresh.get()));
      prepared = std::move(fresh);
    }
    if (shape.bias) {
      CUBLAS_RETURN_IF_ERROR(Set(prepared->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    }
    Workspace workspace(device_);
    RETURN_ERROR(workspace.Reserve(prepared->workspace_bytes));
    const float alpha = 1, beta = shape.accumulate ? 1 : 0;
    CUBLAS_RETURN_IF_ERROR(
        cublasLtMatmul(handle_.get(), prepared->description.get(), &alpha, b, prepared->b.get(), a,
                       prepared->a.get(), &beta, c, prepared->c.get(), c, prepared->c.get(),
                       &prepared->algorithm, workspace.data(), prepared->workspace_bytes, stream));
    return Error{};
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool, bool, bool, DType, DType,
                         uint32_t>;

  static Key KeyOf(const MatmulShape& shape, uint32_t alignment) {
    return {shape.rows,        shape.columns,     shape.inner,      shape.a_step(),
            shape.transpose_a, shape.transpose_b, shape.accumulate, shape.bias,
            shape.factors,     shape.product,     alignment};
  }

  Error Prepare(const MatmulShape& shape, uint32_t alignment, const void* bias,
                Prepared* prepared) const {
    const bool tf32 = options_.tf32 && shape.factors == DType::kF32;
    Description& description = prepared->description;
    CUBLAS_RETURN_IF_ERROR(cublasLtMatmulDescCreate(
        description.put(), tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t of_b = shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_a = shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_TRANSA, of_b));
    CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_TRANSB, of_a));
    if (shape.bias) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
      // cuBLASLt looks at its alignment only.
      CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    }
    const int64_t rows = shape.rows, columns = shape.columns, inner = shape.inner;
    const int64_t b_columns = shape.transpose_b ? inner : columns;
    CUBLAS_RETURN_IF_ERROR(Describe(shape.factors, shape.transpose_a ? inner : rows,
                                    shape.a_columns(), shape.a_step(), &prepared->a));
    CUBLAS_RETURN_IF_ERROR(Describe(shape.factors, shape.transpose_b ? columns : inner, b_columns,
                                    b_columns, &prepared->b));
    CUBLAS_RETURN_IF_ERROR(Describe(shape.product, rows, columns, columns, &prepared->c));
    return Choose(alignment, prepared);
  }

  // Takes the heuristics' first proposal, which depends only on shape, device and cuBLASLt's
  // version.
  Error Choose(uint32_t alignment, Prepared* prepared) const {
    Preference preference;
    CUBLAS_RETURN_IF_ERROR(cublasLtMatmulPreferenceCreate(preference.put()));
    CUBLAS_RETURN_IF_ERROR(
        Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes));
    // If a sum is split, its parts stay fp32 and are added in a separate step.
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    CUBLAS_RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
    for (const auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      CUBLAS_RETURN_IF_ERROR(Set(preference, operand, alignment));
    }
    cublasLtMatmulHeuristicResult_t best = {};
    int count = 0;
    CUBLAS_RETURN_IF_ERROR(cublasLtMatmulAlgoGetHeuristic(
        handle_.get(), prepared->description.get(), prepared->b.get(), prepared->a.get(),
        prepared->c.get(), prepared->c.get(), preference.get(), /*requestedAlgoCount=*/1, &best,
        &count));
    if (count < 1)
      return CublasError(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic");
    CUBLAS_RETURN_IF_ERROR(best.state);
    prepared->algorithm = best.algo;
    prepared->workspace_bytes = best.workspaceSize;
    return Error{};
  }

  CudaDevice* const device_;
  const OpsOptions options_;
  CublasOwned<cublasLtHandle_t, cublasLtDestroy> handle_;
  std::map<Key, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace

std::unique_ptr<Matmul> NewMatmul(CudaDevice* device, const OpsOptions& options) {
  return std::make_unique<CublasMatmul>(device, options);
}

}  // namespace thinwire::cuda
