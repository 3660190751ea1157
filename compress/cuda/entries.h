// Payload of topk and threshold: the kept entries, and where they stood.
#pragma once

#include <cstdint>

#include "compress/cuda/codecs.h"
#include "compress/cuda/index_coding.h"
#include "compress/cuda/index_reader.h"
#include "compress/cuda/kept_values.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Parts of an encoder's payload in device memory, until its length is known.
class EntriesOnDevice {
 public:
  explicit EntriesOnDevice(CudaDevice* device) : device_(device) {}

  // Reserves memory for at most `most` entries of x, and zeroes *plan(). What `context` refers to
  // outlives this.
  Error Reserve(const TensorView& x, const CodecSpec& spec, const KernelContext& context,
                int64_t most);

  // Returns the bitmap of the elements to keep, all of them supported (BitmapBytes(x.elements())).
  // The caller sets it.
  uint32_t* kept() const { return kept_.as<uint32_t>(); }
  // Returns the plan, of which the caller sets `nonfinite`.
  EntriesPlan* plan() const { return plan_.as<EntriesPlan>(); }

  // Lists what is kept, chooses and writes the index coding, narrows the values. Only launches
  // kernels; the header and uniform's quantisation are still missing then.
  Error Submit();

  // Writes the payload; waits for its length and for the copies. OutOfRange if the tensor holds NaN
  // or infinity; InvalidArgument if the payload's memory does not suffice or values overflow
  // (uniform).
  Error CopyTo(const PayloadTarget& payload);

 private:
  Error SubmitCopies(const EntriesPlan& plan, const PayloadTarget& payload);

  CudaDevice* const device_;
  TensorView x_;
  CodecSpec spec_;
  KernelContext context_;
  CudaScratch kept_{device_}, plan_{device_};
  RankedBitmap ranked_{device_}, support_{device_};
  KeptValues values_{device_};
  IndexBytes indices_{device_};
};

// Payload that is decoded into a tensor.
class EntriesToDecode {
 public:
  explicit EntriesToDecode(CudaDevice* device) : device_(device) {}

  // Copies the payload to the device. `payload` stays until the stream is done; what `context`
  // refers to outlives this. InvalidArgument if the host sees that it is impossible for x. Decodes
  // uniform's values, for which it waits.
  Error SubmitCopy(const PayloadSource& payload, const CodecSpec& spec,
                   const KernelContext& context, const TensorView& x);

  // Overwrites all of x. Only launches kernels. Sets *fault, in device memory, to 1 if the payload
  // is to be refused; x is then unspecified.
  Error Submit(const TensorView& x, uint32_t* fault);

 private:
  CudaDevice* const device_;
  CodecSpec spec_;
  KernelContext context_;
  int64_t count_ = 0;
  RankedBitmap support_{device_};
  GpuIndexReader indices_{device_};
  PayloadValues values_{device_};
};

CudaDecode CudaEntriesDecode;

}  // namespace thinwire
