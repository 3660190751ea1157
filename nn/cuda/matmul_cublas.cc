// matmul.h by cuBLASLt.
//
// cuBLASLt is column-major: memory of a row-major [r, c] is for it a column-major [c, r], the
// transpose. So it is asked for c^T = op(b)^T op(a)^T. Its A is our b, its B our a, and its D our c
// as [columns, rows]. What is (not) transposed for us is (not) transposed for it. Its bias belongs
// to rows of D, which are our columns.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <tuple>
#include <utility>

#include "nn/cuda/cublaslt.h"
#include "nn/cuda/matmul.h"
#include "nn/cuda/preparation.h"
#include "nn/cuda/workspace.h"

namespace thinwire::cuda {
namespace {

// Size that NVIDIA advises for Hopper.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;

using Layout = CublasOwned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = CublasOwned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = CublasOwned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// A product that is ready to run, or why it cannot be.
struct Prepared {
  Error refusal;
  Description description;
  Layout a, b, c;  // as we name them, not cuBLASLt
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace_bytes = 0;
};

// Returns the alignment of all matrices in bytes: the lowest bit set in any address. It is at most
// 16, which is all that the fastest kernels want. Better aligned memory must not be multiplied
// differently. x & ~(x - 1) isolates the lowest set bit of x.
uint32_t AlignmentOf(const MatmulOperands& of) {
  uintptr_t address = 16;
  for (const void* matrix : std::initializer_list<const void*>{of.a, of.b, of.c, of.aux}) {
    address |= reinterpret_cast<uintptr_t>(matrix);
  }
  return static_cast<uint32_t>(address & ~(address - 1));
}

// Returns whether cuBLASLt may be asked for the epilogue: it wants aux in rows of a multiple of 8.
// Only for bf16, as its tanh need not have more bits, and on Hopper (compute capability 9), as its
// kernels for other GPUs may be slower than a product and our GELU.
bool MayHave(const MatmulShape& shape, uint32_t alignment, int compute_capability) {
  if (shape.epilogue == Epilogue::kNone) return true;
  return compute_capability == 9 && shape.product == DType::kBF16 && shape.columns % 8 == 0 &&
         alignment == 16;
}

const char* NameOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return "none";
    case Epilogue::kGelu:
    case Epilogue::kGeluAux:
      return "GELU";
    case Epilogue::kGeluGradient:
      return "GELU's gradient";
  }
  return "unknown";
}

// Returns the error with the product in which it was met.
Error Named(const MatmulShape& shape, absl::StatusCode code, const Error& error) {
  return MakeError(code, "product of rows x columns x inner %lld x %lld x %lld, epilogue %s: %s",
                   static_cast<long long>(shape.rows), static_cast<long long>(shape.columns),
                   static_cast<long long>(shape.inner), NameOf(shape.epilogue), error.message);
}
Error Named(const MatmulShape& shape, const Error& error) {
  return error.ok() ? error : Named(shape, static_cast<absl::StatusCode>(error.code), error);
}

// Returns what it means that a product could not be run for the first time. There is another way
// without the epilogue, so whatever cuBLASLt says against it is a refusal, unless that may pass: a
// lack of memory, or a library that cannot start.
Error Refusal(const MatmulShape& shape, const Error& error) {
  const bool passes = IsExhausted(error) || IsUnavailable(error);
  if (error.ok() || shape.epilogue == Epilogue::kNone || passes) return Named(shape, error);
  return Named(shape, absl::StatusCode::kUnimplemented, error);
}

cublasLtEpilogue_t EpilogueOf(const MatmulShape& shape) {
  switch (shape.epilogue) {
    case Epilogue::kNone:
      return shape.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::kGelu:
      return shape.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Epilogue::kGeluAux:
      return shape.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
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

  Error Run(const MatmulShape& shape, const MatmulOperands& of) override {
    if (shape.rows == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));  // makes the device current
    if (handle_.get() == nullptr) CUBLAS_RETURN_IF_ERROR(cublasLtCreate(handle_.put()));
    const uint32_t alignment = AlignmentOf(of);
    std::unique_ptr<Prepared>& prepared = prepared_[KeyOf(shape, alignment)];
    if (prepared == nullptr) return RunFirst(shape, alignment, of, stream, &prepared);
    RETURN_ERROR(prepared->refusal);
    return Named(shape, Submit(shape, of, *prepared, stream));
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool, bool, bool, Epilogue,
                         DType, DType, uint32_t>;

  // Prepares and runs a product. Some refusals show only when it is run. An error that may pass is
  // not kept.
  Error RunFirst(const MatmulShape& shape, uint32_t alignment, const MatmulOperands& of,
                 cudaStream_t stream, std::unique_ptr<Prepared>* prepared) const {
    auto fresh = std::make_unique<Prepared>();
    Error error = Prepare(shape, alignment, of, fresh.get());
    if (error.ok()) error = Submit(shape, of, *fresh, stream);
    const Error refusal = fresh->refusal = Refusal(shape, error);
    if (refusal.ok() || IsUnimplemented(refusal)) *prepared = std::move(fresh);
    return refusal;
  }

  Error Submit(const MatmulShape& shape, const MatmulOperands& of, const Prepared& prepared,
               cudaStream_t stream) const {
    RETURN_ERROR(SetPointers(shape, of, prepared.description));
    Workspace workspace(device_);
    RETURN_ERROR(workspace.Reserve(prepared.workspace_bytes));
    const float alpha = 1, beta = shape.accumulate ? 1 : 0;
    CUBLAS_RETURN_IF_ERROR(cublasLtMatmul(
        handle_.get(), prepared.description.get(), &alpha, of.b, prepared.b.get(), of.a,
        prepared.a.get(), &beta, of.c, prepared.c.get(), of.c, prepared.c.get(),
        &prepared.algorithm, workspace.data(), prepared.workspace_bytes, stream));
    return Error{};
  }

  static Key KeyOf(const MatmulShape& shape, uint32_t alignment) {
    return {shape.rows,        shape.columns,     shape.inner,      shape.a_step(),
            shape.transpose_a, shape.transpose_b, shape.accumulate, shape.bias,
            shape.epilogue,    shape.factors,     shape.product,    alignment};
  }

  // Sets the pointers that a description has besides its matrices'. While it is prepared, cuBLASLt
  // looks at their alignment only.
  static Error SetPointers(const MatmulShape& shape, const MatmulOperands& of,
                           const Description& description) {
    if (shape.bias) {
      CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, of.bias));
    }
    if (shape.has_aux()) {
      CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, of.aux));
    }
    return Error{};
  }

  Error Prepare(const MatmulShape& shape, uint32_t alignment, const MatmulOperands& of,
                Prepared* prepared) const {
    int major = 0;
    CUDA_RETURN_IF_ERROR(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_->index()));
    if (!MayHave(shape, alignment, major)) {
      return CublasError(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic");
    }
    const bool tf32 = options_.tf32 && shape.factors == DType::kF32;
    Description& description = prepared->description;
    CUBLAS_RETURN_IF_ERROR(cublasLtMatmulDescCreate(
        description.put(), tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t of_b = shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_a = shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_TRANSA, of_b));
    CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_TRANSB, of_a));
    CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(shape)));
    if (shape.has_aux()) {
      const int64_t row = shape.columns;
      CUBLAS_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, row));
    }
    RETURN_ERROR(SetPointers(shape, of, description));
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
