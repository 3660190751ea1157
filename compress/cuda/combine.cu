#include "compress/cuda/kernels.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

// Most rows of a launch. Its arguments hold their addresses: 2 KiB of the 4 that they may take.
constexpr int kMostRows = 64;

constexpr unsigned kThreads = 256;
constexpr int kVector = 4, kVectors = 4;  // elements of a thread: kVectors times kVector
constexpr int64_t kTile = int64_t{kThreads} * kVector * kVectors;

struct Rows {
  void* each[kMostRows];  // null: reads as zeros, is not written
  bool is_bfloat;
};

struct Part {
  Rows x, y, out, also;
  int64_t elements, tiles;  // per row
  float a, b;
  bool zero_nonfinite;
};

// Loads element i of a row and those behind it, of which the row has n.
__device__ void LoadFrom(const void* row, bool is_bfloat, int64_t i, int64_t n,
                         float (&x)[kVector]) {
  if (row == nullptr) {
    for (float& value : x) value = 0;
  } else if (is_bfloat) {
    LoadVector<kVector>(static_cast<const uint16_t*>(row) + i, n, x);
  } else {
    LoadVector<kVector>(static_cast<const float*>(row) + i, n, x);
  }
}

__device__ void StoreTo(void* row, bool is_bfloat, int64_t i, int64_t n,
                        const float (&x)[kVector]) {
  if (row == nullptr) return;
  if (is_bfloat) {
    StoreVector<kVector>(x, n, static_cast<uint16_t*>(row) + i);
  } else {
    StoreVector<kVector>(x, n, static_cast<float*>(row) + i);
  }
}

// Returns whether x is finite: all exponent bits are set in infinities and NaNs only.
__device__ bool IsFinite(float x) { return (__float_as_uint(x) & 0x7FFFFFFFu) < 0x7F800000u; }

// Combines rows, a block per tile of a row. `out` may be x or y: a thread reads its elements before
// it writes them.
__global__ void CombineKernel(Part sums) {
  const int row = static_cast<int>(blockIdx.x / sums.tiles);
  const int64_t tile = blockIdx.x % sums.tiles;
  const void* const x_row = sums.x.each[row];
  const void* const y_row = sums.y.each[row];
  void* const out_row = sums.out.each[row];
  void* const also_row = sums.also.each[row];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t i = tile * kTile + (int64_t{v} * kThreads + threadIdx.x) * kVector;
    const int64_t n = sums.elements - i;
    if (n <= 0) return;
    float x[kVector], y[kVector];
    LoadFrom(x_row, sums.x.is_bfloat, i, n, x);
    LoadFrom(y_row, sums.y.is_bfloat, i, n, y);
    for (int k = 0; k < kVector; ++k) x[k] = sums.a * x[k] + sums.b * y[k];
    StoreTo(also_row, sums.also.is_bfloat, i, n, x);
    for (int k = 0; sums.zero_nonfinite && k < kVector; ++k) x[k] = IsFinite(x[k]) ? x[k] : 0.0f;
    StoreTo(out_row, sums.out.is_bfloat, i, n, x);
  }
}

// Returns rows [first, first + count), of `elements` each.
Rows RowsOf(const RowsView& view, int64_t first, int64_t count, int64_t elements) {
  Rows rows = {};
  rows.is_bfloat = view.dtype == DType::kBF16;
  for (int64_t i = 0; i < count; ++i) {
    if (view.data != nullptr) {
      const int64_t bytes = elements * static_cast<int64_t>(SizeOf(view.dtype));
      rows.each[i] = static_cast<uint8_t*>(view.data) + (first + i) * bytes;
    } else if (view.each != nullptr) {
      rows.each[i] = view.each[first + i];
    }
  }
  return rows;
}

}  // namespace

Error CudaKernels::CombineRows(const RowSums& sums) {
  const int64_t tiles = (sums.elements + kTile - 1) / kTile;
  for (int64_t first = 0; first < sums.count; first += kMostRows) {
    const int64_t count = sums.count - first < kMostRows ? sums.count - first : kMostRows;
    const auto rows = [&](const RowsView& view) {
      return RowsOf(view, first, count, sums.elements);
    };
    const Part part = {rows(sums.x),    rows(sums.y),  rows(sums.out),
                       rows(sums.also), sums.elements, tiles,
                       sums.a,          sums.b,        sums.zero_nonfinite};
    RETURN_ERROR(Launch(device_, dim3(static_cast<unsigned>(count * tiles)), dim3(kThreads),
                        CombineKernel, part));
  }
  return Error{};
}

}  // namespace thinwire
