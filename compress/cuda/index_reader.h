// Indices of entries, read from bytes of any origin: as a bitmap over the tensor's elements.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "compress/cpu/index_coding.h"
#include "compress/cuda/entry_list.h"
#include "compress/cuda/payload.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// What says where the entries of a payload stand.
struct EntryIndices {
  IndexPlan plan;
  PayloadSource bytes;  // as CheckIndexBytes wants them
  int64_t count = 0;    // of entries
  int64_t size = 0;     // indices are below it: elements, or those with support
};

// The memory of one payload's indices on the device.
class GpuIndexReader {
 public:
  explicit GpuIndexReader(CudaDevice* device)
      : device_(device),
        fields_(device),
        flags_(device),
        flag_offsets_(device),
        quotients_(device),
        sums_(device),
        listed_(device),
        bits_(device),
        offsets_(device) {}

  // indices.bytes stay until the stream is done.
  Error SubmitCopy(cudaStream_t stream, const EntryIndices& indices);

  // Reads what was copied; launches only. Sets *fault, in device memory, to 1 unless there are
  // exactly indices.count ascending indices; what bits() says is then of no use, but none is set
  // beyond the tensor.
  Error Submit(cudaStream_t stream, int64_t elements, const RankedBits& support, uint32_t* fault);

  // Over the elements.
  const RankedBits& bits() const { return result_; }

 private:
  // Each makes listed_, a bitmap over the indices below indices_.size.
  Error SubmitPacked(cudaStream_t stream, uint32_t* fault);
  Error SubmitRice(cudaStream_t stream, uint32_t* fault);
  size_t FieldsBytes() const;

  CudaDevice* const device_;
  EntryIndices indices_;
  CudaScratch fields_, flags_;            // as they came
  CudaScratch flag_offsets_, quotients_;  // before each tile of flags; before each entry
  CudaScratch sums_;                      // of remainders, before each tile of entries
  CudaScratch listed_, bits_;             // bitmaps over indices and over elements
  CudaScratch offsets_;
  RankedBits result_;
};

}  // namespace thinwire
