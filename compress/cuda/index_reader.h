// Reader of the indices of entries, from bytes that are not trusted, into a bitmap over the
// tensor's elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/index_coding.h"
#include "compress/cuda/entry_list.h"
#include "compress/cuda/payload.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Indices in a payload, as bytes.
struct EntryIndices {
  IndexPlan plan;
  PayloadSource bytes;  // accepted by CheckIndexBytes
  int64_t count = 0;    // number of entries
  int64_t size = 0;     // indices are below it: number of elements, or of those with support
};

// Reader of one payload's indices, and its memory on the device.
class GpuIndexReader {
 public:
  explicit GpuIndexReader(CudaDevice* device) : device_(device) {}

  // Copies indices.bytes, which stay until the stream is done.
  Error SubmitCopy(const EntryIndices& indices);

  // Reads what was copied; only launches kernels. Sets *fault, in device memory, to 1 unless there
  // are exactly indices.count ascending indices. bits() is then of no use, but has no bit beyond
  // the tensor.
  Error Submit(int64_t elements, const RankedBits& support, uint32_t* fault);

  // Returns the bitmap over the elements.
  const RankedBits& bits() const { return result_.bits(); }

 private:
  // Make listed_, a bitmap over the indices below indices_.size.
  Error SubmitPacked(uint32_t* fault);
  Error SubmitRice(uint32_t* fault);
  size_t FieldsBytes() const;

  CudaDevice* const device_;
  EntryIndices indices_;
  CudaScratch fields_{device_}, flags_{device_};  // as they came
  RankedBitmap ranked_flags_{device_};
  CudaScratch quotients_{device_};               // before each entry
  CudaScratch sums_{device_};                    // of remainders, before each tile of entries
  CudaScratch listed_{device_}, bits_{device_};  // bitmaps over indices and over elements
  RankedBitmap result_{device_};
};

}  // namespace thinwire
