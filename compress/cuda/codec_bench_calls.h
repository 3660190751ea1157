// The codecs as calls from device memory to device memory, for codec_bench.
#pragma once

#include <functional>

#include "compress/spec.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Launches only; null where a codec has no such function, as none with a lossless stage has.
struct DeviceCalls {
  std::function<Error()> encode;  // of x
  std::function<Error()> decode;  // into y, of what `encode` left last
};

// For tensors in memory of `device` that are not empty, of one shape, and outlive *calls. Encodes x
// once.
Error MakeDeviceCalls(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                      const TensorView& y, DeviceCalls* calls);

}  // namespace thinwire
