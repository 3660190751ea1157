// The payload of topk and threshold: chosen entries, and where they stood.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/codec.h"
#include "compress/cuda/index_coding.h"
#include "compress/cuda/index_reader.h"
#include "compress/cuda/kept_values.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// A payload in device memory, part by part, until its length is known.
class EntriesOnDevice {
 public:
  explicit EntriesOnDevice(CudaDevice* device)
      : device_(device),
        kept_(device),
        offsets_(device),
        support_offsets_(device),
        plan_(device),
        values_(device),
        indices_(device) {}

  // For at most `most` entries of x; what `context` refers to outlives this. *plan() is all zero.
  Error Reserve(cudaStream_t stream, const TensorView& x, const CodecSpec& spec,
                const KernelContext& context, int64_t most);

  // To be set: the bits of elements to keep, all of them supported (BitmapBytes(x.elements())).
  uint32_t* kept() const { return kept_.as<uint32_t>(); }
  // To be set: `nonfinite`.
  EntriesPlan* plan() const { return plan_.as<EntriesPlan>(); }

  // Lists what is kept, chooses and writes the index coding, narrows the values. Launches only;
  // what is missing then is the header, and uniform's quantisation.
  Error Submit(cudaStream_t stream);

  // Waits for the length, and for the copies. InvalidArgument if the tensor holds NaN or infinity,
  // the payload's memory does not suffice, or values overflow (uniform).
  Error CopyTo(const PayloadTarget& payload);

 private:
  Error SubmitCopies(const EntriesPlan& plan, const PayloadTarget& payload);

  CudaDevice* const device_;
  TensorView x_;
  CodecSpec spec_;
  KernelContext context_;
  CudaScratch kept_, offsets_, support_offsets_;
  CudaScratch plan_;
  KeptValues values_;
  IndexBytes indices_;
};

// A payload on its way into a tensor.
class EntriesToDecode {
 public:
  explicit EntriesToDecode(CudaDevice* device)
      : device_(device), support_offsets_(device), indices_(device), values_(device) {}

  // `payload` stays until the stream is done; what `context` refers to outlives this.
  // InvalidArgument if what the host can see of it is impossible for x; uniform's values are
  // decoded, for which this waits.
  Error SubmitCopy(cudaStream_t stream, const PayloadSource& payload, const CodecSpec& spec,
                   const KernelContext& context, const TensorView& x);

  // Overwrites all of x. Launches only. Sets *fault, in device memory, to 1 if the payload is to be
  // refused; x is then unspecified.
  Error Submit(cudaStream_t stream, const TensorView& x, uint32_t* fault);

 private:
  CudaDevice* const device_;
  CodecSpec spec_;
  KernelContext context_;
  int64_t count_ = 0;
  CudaScratch support_offsets_;
  GpuIndexReader indices_;
  PayloadValues values_;
};

CudaDecode CudaEntriesDecode;

}  // namespace thinwire
