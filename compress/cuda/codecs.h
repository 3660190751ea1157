// Codecs on a GPU, as compress/cpu/codecs.h has the CPU's: `CudaEncode CudaTopKEncode;` declares a
// function with CudaEncode's parameters. Codecs that others call in parts have headers of their
// own.
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

// Codec ecsq: every element as a whole number of steps, each a multiple of its scope's root mean
// square.
CudaEncode CudaEcsqEncode;
CudaDecode CudaEcsqDecode;

// Codec low_rank.

// Takes the steps of compress/cpu/low_rank.cc, but adds fp64 sums in other orders, so that factors
// may differ from the CPU's in their last bits.
CudaEncode CudaLowRankEncode;
// Equal to the CPU's to the last bit.
CudaDecode CudaLowRankDecode;

// See CodecKernels::Project and Reproject.
Error CudaLowRankProject(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                         const float* start, float* p, float* largest);
Error CudaLowRankReproject(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                           float largest, const float* p, float* q);

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

}  // namespace thinwire
