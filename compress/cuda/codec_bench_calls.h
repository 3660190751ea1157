// Codecs as calls from device memory to device memory, for codec_bench.
#pragma once

#include <functional>

#include "compress/spec.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Calls that only launch kernels. Null where a codec has no such function; this includes every
// codec with a lossless stage.
struct DeviceCalls {
  std::function<Error()> encode;  // encodes x
  std::function<Error()> decode;  // decodes into y what `encode` wrote last
};

// Makes the calls for tensors x and y of one shape, not empty, in memory of `device`. Both outlive
// *calls. Encodes x once.
Error MakeDeviceCalls(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                      const TensorView& y, DeviceCalls* calls);

}  // namespace thinwire
