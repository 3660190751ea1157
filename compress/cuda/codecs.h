// Codecs on a GPU, as compress/cpu/codecs.h has the CPU's: `CudaEncode CudaTopKEncode;` declares a
// function with CudaEncode's parameters. `uniform` and the `entries` of sparse codecs, which others
// call in parts, have headers of their own.
#pragma once

#include "compress/cuda/payload.h"
#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

class EntriesOnDevice;

// Encode and decode, see CodecKernels; x is in memory of `device`. The text of a decoder's error
// about a payload in device memory is never shown.
using CudaEncode = Error(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                         const KernelContext& context, const PayloadTarget& payload);
using CudaDecode = Error(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                         const KernelContext& context, const TensorView& x);

// Codec blockwise8: an absmax per block and a code per element.
CudaEncode CudaBlockwise8Encode;
CudaDecode CudaBlockwise8Decode;

// Encode and decode within device memory, for tensors that are not empty; they only launch kernels.
// The codes lie at a multiple of 4 bytes, with memory up to the next one behind them. *nonfinite
// becomes 1 if x holds NaN or infinity, *refused if an absmax is refused; both are 0 before.
Error SubmitBlockwise8Encode(CudaDevice* device, const TensorView& x, uint32_t block,
                             uint8_t* payload, uint32_t* nonfinite);
Error SubmitBlockwise8Decode(CudaDevice* device, const uint8_t* payload, uint32_t block,
                             const TensorView& x, uint32_t* refused);

// Codecs none, fp16 and bf16: every element in another type.
CudaEncode CudaCastEncode;
CudaDecode CudaCastDecode;

// Encode and decode within device memory; they only launch kernels. `body` is what follows the
// header, aligned to 16 bytes. *exponent is fp16's; it is null for other types.
Error SubmitCastEncode(CudaDevice* device, const TensorView& x, DType to, int16_t* exponent,
                       uint8_t* body);
Error SubmitCastDecode(CudaDevice* device, const uint8_t* body, DType from, int exponent,
                       const TensorView& x);

// Codec ecsq: every element as a whole number of steps, each a multiple of its scope's root mean
// square.
CudaEncode CudaEcsqEncode;
CudaDecode CudaEcsqDecode;

// Codec fp8: every element as an 8-bit float of the tensor times a power of two.
CudaEncode CudaFp8Encode;
CudaDecode CudaFp8Decode;

// Encode and decode within device memory; they only launch kernels. `codes` are aligned to 4 bytes.
// The encoder sets *largest to the bits of the largest magnitude; the caller refuses kInfinityBits
// and more. The decoder sets *refused, 0 before, to 1 if a code exceeds LargestFp8Code.
Error SubmitFp8Encode(CudaDevice* device, const TensorView& x, Fp8Format format, int16_t* exponent,
                      uint8_t* codes, uint32_t* largest);
Error SubmitFp8Decode(CudaDevice* device, const uint8_t* codes, int exponent, Fp8Format format,
                      const TensorView& x, uint32_t* refused);

// Codec low_rank.

// Takes the steps of compress/cpu/low_rank.cc, but adds fp64 sums in other orders, so that factors
// may differ from the CPU's in their last bits.
CudaEncode CudaLowRankEncode;
// Equal to the CPU's to the last bit.
CudaDecode CudaLowRankDecode;

// Codec randomk: keeps the elements of each scope with the highest random draws of a seed's stream.
CudaEncode CudaRandomKEncode;
CudaDecode CudaRandomKDecode;

// Codec uniform with rotation: uniform on a tensor that was rotated first.
CudaEncode CudaRotatedUniformEncode;
CudaDecode CudaRotatedUniformDecode;

// Codec threshold: keeps every magnitude from a multiple of the message's own unit on.
CudaEncode CudaThresholdEncode;

// Encodes up to the copies to the host; only launches kernels. x has at most kSparseMaxElements.
// Reads x once, before that once more if the unit is not absolute, and then what is kept.
Error SubmitThresholdEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                            const KernelContext& context, EntriesOnDevice* payload);

// Codec topk with indices of its own: keeps the largest magnitudes of each scope.
CudaEncode CudaTopKEncode;

// Encodes up to the copies to the host; only launches kernels. x has at most kSparseMaxElements.
// Reads x as often as kept.h says, and then what is kept.
Error SubmitTopKEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                       const KernelContext& context, EntriesOnDevice* payload);

// Returns the error that names the first NaN or infinity in x, which is in device memory, among
// elements with support (all if null). Requires that there is one. Waits for x.
Error CudaNonFiniteError(CudaDevice* device, const char* codec, const TensorView& x,
                         const SupportView* support = nullptr);

}  // namespace thinwire
