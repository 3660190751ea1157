// Frames of pairs of the entropy coder (compress/entropy/pairs_layout.h), for strings in device
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cuda/frame_bytes.h"
#include "compress/cuda/rans.h"
#include "compress/entropy/codes_place.h"
#include "compress/entropy/pairs_layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Writer of one string as such a frame. What it makes stays in device memory.
class CudaPairsWriter {
 public:
  // Starts with a string of n bytes in device memory, which outlive the writer; `codes` says which
  // of them are codes.
  CudaPairsWriter(CudaDevice* device, const uint8_t* bytes, size_t n, const CodesPlace& codes);

  // Makes the pairs. Adds the histogram of all their rows to `pairs` and that of the large codes to
  // `large`, kSymbols counts each in device memory.
  Error SubmitCounts(uint32_t* pairs, uint32_t* large);
  // Chooses the table from these. Returns the expected size of the frame.
  double Plan(const Frequencies& pairs, const Frequencies& large);
  // Returns how often each code occurs, from the same histograms.
  Frequencies CountsOfCodes(const Frequencies& pairs, const Frequencies& large) const {
    return CodesOfPairs(head_, pairs, large);
  }
  // Appends the frame to *made, whose pieces in device memory belong to this writer. Call Plan
  // before.
  Error Write(FrameBytes* made);

 private:
  Error ListLarge();
  void AddFront(FrameBytes* made) const;

  CudaDevice* const device_;
  const uint8_t* const bytes_;
  const size_t n_;
  const uint8_t* const codes_;
  PairsHead head_;
  PairsPlan plan_ = {};
  CudaScratch pairs_{device_}, offsets_{device_}, large_{device_};
  RansWriter writer_{device_};
};

// Decodes a frame in host memory to device memory. InvalidArgument if it is refused, also if it has
// no codes. Waits.
Error CudaReadPairsFrame(CudaDevice* device, const PairsFrameView& view, uint8_t* bytes);

// Samples the n codes as compress/entropy/pairs_layout.h says, and sets *large to the number of
// large ones among them.
Error SubmitLargeLooks(CudaDevice* device, const uint8_t* codes, int64_t n, uint32_t* large);

// Makes pairs of n codes. Bytes behind the last pair, up to `size`, are 0; `size` and the address
// are multiples of 8. The large codes are not written, but counted: 1 is added to large[c] for each
// that is c. `large` has kSymbols counts of 32 bits.
Error SubmitToPairs(CudaDevice* device, const uint8_t* codes, int64_t n, uint8_t* pairs,
                    int64_t size, uint32_t* large);

// Inverts this. Sets *fault to 1 if there are not `num_large` large codes, or one is not large;
// `codes` then mean nothing. `pairs` is aligned to 4 bytes. `offsets` is memory of
// PairOffsetsBytes(n).
size_t PairOffsetsBytes(int64_t n);
Error SubmitFromPairs(CudaDevice* device, const uint8_t* pairs, int64_t n, const uint8_t* large,
                      int64_t num_large, uint64_t* offsets, uint8_t* codes, uint32_t* fault);

}  // namespace thinwire
