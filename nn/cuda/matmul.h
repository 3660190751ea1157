// Matrix products by a library; weighted.h makes a layer of them. matmul_cublas.cc is for GPUs,
// matmul_emulated.cc for the emulator.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/ops.h"
#include "tensor/cuda/device.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

// Operations on a product, bias included, before it is rounded to c's type.
enum class Epilogue : uint8_t {
  kNone,
  kGelu,         // c is its GELU, in tanh form
  kGeluAux,      // likewise, and it is rounded to aux
  kGeluGradient  // it is multiplied by GELU's derivative at aux
};

// A product c = op(a) op(b) [+ c] [+ bias].
//   op(a): [rows, inner]   op(b): [inner, columns]   c: [rows, columns]
//   bias: [columns], added to every row
//   aux: [rows, columns] of c's type, for an epilogue that has it
// Rows are contiguous. An operand that op transposes is stored untransposed: a as [inner, rows], b
// as [columns, inner].
struct MatmulShape {
  int64_t rows = 0, columns = 0, inner = 0;
  // Elements between the beginnings of a's rows, if they are longer than the part that is
  // multiplied; 0: contiguous.
  int64_t row_of_a = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // adds the old c
  bool bias = false;        // of the type of c
  Epilogue epilogue = Epilogue::kNone;
  DType factors = DType::kF32;  // type of a and b
  DType product = DType::kF32;  // type of c; sums are fp32 in any case

  int64_t a_columns() const { return transpose_a ? rows : inner; }  // as stored
  int64_t a_step() const { return row_of_a > 0 ? row_of_a : a_columns(); }
  bool has_aux() const {
    return epilogue == Epilogue::kGeluAux || epilogue == Epilogue::kGeluGradient;
  }
};

struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // null without one, as is aux
  void* aux = nullptr;
};

// Submits to the calling thread's stream. One thread at a time uses the Matmul of an Ops.
class Matmul {
 public:
  virtual ~Matmul() = default;
  // Computes the product. Unimplemented if the library has no kernel for it or refuses its
  // epilogue: always, or never, for a device, a shape and memory aligned to 16 bytes.
  virtual Error Run(const MatmulShape& shape, const MatmulOperands& operands) = 0;
};

// Makes a Matmul. Without tf32, products of fp32 are exact. Either way bits are equal in every run
// and process.
std::unique_ptr<Matmul> NewMatmul(CudaDevice* device, const OpsOptions& options);

}  // namespace thinwire::cuda
