// Numbers of a random rotation that every backend shares: limits of values, and the transform's
// factor. Plain functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/host_device.h"
#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Returns fp32(1 / sqrt(size)) for a power of two.
HOST_DEVICE inline float InverseRoot(int64_t size) {
  float root = 1;
  for (; size >= 4; size /= 4) root /= 2;
  return size == 2 ? root * 0x1.6A09E6p-1f : root;
}

// Returns the largest magnitude that may be rotated. Up to 2^125 / block^2 neither the transform
// overflows nor the inverse of what its codes decode to.
inline double MostToRotate(uint32_t block) { return 0x1p125 / (1.0 * block * block); }
inline Error TooLargeToRotate(float magnitude, uint32_t block) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "uniform: a value of magnitude %g, want at most %g with blocks of %u rotated",
                   static_cast<double>(magnitude), MostToRotate(block), block);
}

// Returns the largest magnitude of a rotated value that a decoder accepts.
inline float MostRotated(uint32_t block) { return 0x1p127f / static_cast<float>(block); }

// Returns the size of the pieces, of whole blocks, in which large values are looked for: the
// decoder names the largest value of the first piece that has one too large.
inline int64_t PieceOfRotation(uint32_t block) { return std::max<int64_t>(4096, block); }

// Returns the specification for the rotated tensor; FloatsLike returns that tensor, of x's shape in
// fp32.
inline CodecSpec WithoutRotation(CodecSpec spec) {
  spec.rotation = Rotation::kNone;
  spec.rotation_block = 0;
  return spec;
}
inline TensorView FloatsLike(const TensorView& x, float* data) {
  TensorView view = x;
  view.data = data;
  view.dtype = DType::kF32;
  return view;
}

}  // namespace thinwire
