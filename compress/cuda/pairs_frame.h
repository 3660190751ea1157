// The entropy coder's frames of pairs (compress/entropy/pairs_layout.h), of strings in device
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cuda/frame_bytes.h"
#include "compress/cuda/rans.h"
#include "compress/entropy/codes_place.h"
#include "compress/entropy/pairs_layout.h"
#include "tensor/cuda/device.h"
#include "tensor/error.h"

namespace thinwire {

// One string on its way into such a frame. What it makes stays in device memory.
class CudaPairsWriter {
 public:
  // `bytes`: n in device memory, which outlive this; of some of which `codes` says that they are
  // codes.
  CudaPairsWriter(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& codes);

  // Says how many bytes the frame is expected to take. Waits.
  Error Plan(double* expected_bytes);
  // After Plan. Appends the frame to *made, whose pieces in device memory are this writer's.
  Error Write(FrameBytes* made);

 private:
  Error Count();
  Error ListLarge();
  void AddFront(FrameBytes* made) const;

  CudaDevice* const device_;
  const uint8_t* const bytes_;
  const size_t n_;
  const uint8_t* const codes_;
  PairsHead head_;
  Frequencies pair_counts_ = {};
  PairsPlan plan_ = {};
  CudaScratch counts_, pairs_, offsets_, large_;
  RansWriter writer_;
};

// What a frame in host memory holds, to device memory. InvalidArgument if it is refused, also if it
// has no codes. Waits.
Error CudaReadPairsFrame(CudaDevice* device, const PairsFrameView& view, uint8_t* bytes);

}  // namespace thinwire
