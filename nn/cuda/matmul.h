// Matrix products as a library computes them; linear.h makes of it what layers want. Twins:
// matmul_cublas.cc for GPUs, matmul_emulated.cc for the emulator.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/ops.h"
#include "tensor/cuda/device.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

// c = op(a) op(b) [+ c] [+ bias].   op(a): [rows, inner]   op(b): [inner, columns]
// c: [rows, columns]   bias: [columns], added to every row. Rows are contiguous; a transposed
// operand lies in memory as it is before op, a as [inner, rows] and b as [columns, inner].
struct MatmulShape {
  int64_t rows = 0, columns = 0, inner = 0;
  // Elements between the beginnings of a's rows in memory, where these are longer than what is
  // multiplied; 0: they are contiguous.
  int64_t row_of_a = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;      // + c
  bool bias = false;            // of c's type
  DType factors = DType::kF32;  // of a and b
  DType product = DType::kF32;  // of c; sums are fp32 in any case

  int64_t a_columns() const { return transpose_a ? rows : inner; }  // as it lies in memory
  int64_t a_step() const { return row_of_a > 0 ? row_of_a : a_columns(); }
};

// Submits to the calling thread's stream. What an Ops has of it is used by one thread at a time.
class Matmul {
 public:
  virtual ~Matmul() = default;
  // `bias` is null without one. Unimplemented when the library has no kernel for it.
  virtual Error Run(const MatmulShape& shape, const void* a, const void* b, const void* bias,
                    void* c) = 0;
};

// Without tf32, products of fp32 are exact. Equal bits in every run and process, either way.
std::unique_ptr<Matmul> NewMatmul(CudaDevice* device, const OpsOptions& options);

}  // namespace thinwire::cuda
