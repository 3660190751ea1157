// Codec uniform: a grid of 2^bits levels over the range of each scope.
#pragma once

#include <cstdint>

#include "compress/cuda/codecs.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Without rotation; CudaRotatedUniformEncode has it.
CudaEncode CudaUniformEncode;
CudaDecode CudaUniformDecode;

// The functions below work within device memory, on tensors that are not empty; they only launch
// kernels. `payload` has memory for UniformPayloadBytes; its codes begin at a multiple of 4 bytes,
// with memory up to the next one behind them.

// Findings of an encoder, in device memory; zeros before.
struct UniformEncoded {
  uint32_t nonfinite;  // 1 if x holds NaN or infinity
  uint32_t largest;    // fixed_point: bits of the largest magnitude
  uint32_t varies;     // fixed_point: 1 unless all values are equal
  float constant;      // fixed_point: their value if they are; the payload then means nothing
  unsigned long long overflow;  // complement of the first scope whose range overflows; 0: none
};
Error SubmitUniformEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                          uint64_t random_key, uint8_t* payload, UniformEncoded* found);
// Returns the encoder's error if `found` (in host memory by now) means one. May wait.
Error UniformEncodeError(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                         const UniformEncoded& found);

// Decodes a payload that is not a constant tensor's. Requires CheckExponent. *refused, 0 before,
// becomes 1 if a range is refused or a code is above the grid's.
Error SubmitUniformDecode(CudaDevice* device, const uint8_t* payload, const CodecSpec& spec,
                          const TensorView& x, uint32_t* refused);

}  // namespace thinwire
