// The codecs on the CPU: what each does, and its functions. All have one of two types: `CpuEncode
// CpuTopKEncode;` declares a function with CpuEncode's parameters.
#pragma once

#include "compress/kernels.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Encode and decode, see CodecKernels. `threads` threads (NewCpuCodecKernels) share the tensor.
using CpuEncode = Error(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                        const PayloadBuffer& payload, int threads);
using CpuDecode = Error(const PayloadView& payload, const CodecSpec& spec,
                        const KernelContext& context, const TensorView& x, int threads);

// Codec blockwise8, SWARM's wire format (arXiv 2301.11913): an absmax per block of elements, and a
// byte per element. The byte names the entry nearest to fp32(x / absmax), the lower one in a tie,
// of a fixed codebook of 256 entries on [-1, 1].
//
// The codebook is that of dynamic tree quantisation (Dettmers, arXiv 1511.04561, and block-wise in
// arXiv 2110.02861): seven decades, each with twice the entries of the one below. So small values
// keep a relative precision that uniform grids lack.
CpuEncode CpuBlockwise8Encode;
CpuDecode CpuBlockwise8Decode;

// Codecs none, fp16 and bf16: every element is sent, in its own or a shorter type.
//
// They carry NaN and infinity. fp16 multiplies the whole tensor by a power of two, sent in front,
// so that the largest finite value fits. So tiny gradients survive and nothing finite overflows.
// bf16 has the range of fp32; only values above 3.39e38 round to infinity.
CpuEncode CpuCastEncode;
CpuDecode CpuCastDecode;

// Codec ecsq: entropy-coded scalar quantisation. Every element becomes an unbounded whole number of
// steps; a step is a multiple of the root mean square of its scope. The entropy coder
// (compress/entropy/frame.h) makes frequent numbers cheap. Here each number is a byte, and the few
// that have no byte follow behind.
//
//   nearest, dead_zone  x^ = sign(q) (|q| + mean_|q|) step    reconstruction points at cells' means
//                                                             (Lloyd 1957; Max 1960)
//   stochastic          x^ = q step                           unbiased
//   dither              x^ = (q - u) step                     u from a stream that both ends draw
//                                                             (Roberts 1962; Ziv 1985)
CpuEncode CpuEcsqEncode;
CpuDecode CpuEcsqDecode;

// Codec fp8: every element as an 8-bit float of the Open Compute Project (OCP 8-bit Floating Point
// Specification, 2023): e4m3 (largest 448, four significant bits) or e5m2 (57344, three).
//
// As under fp16 the whole tensor is multiplied by a power of two, sent in front, that brings the
// largest magnitude to the upper end of the format. So tiny gradients survive and nothing
// overflows. Rounds to nearest even. The decoder refuses codes that are no finite number in fp32.
CpuEncode CpuFp8Encode;
CpuDecode CpuFp8Decode;

// Codec low_rank: one step of a power iteration, P = orthonormalised M Q, sent with Q' = M^T P
// (PowerSGD; Vogels et al., NeurIPS 2019). M is the tensor with its last axis as columns: images
// [batch * height * width, channels], sequences [batch * seq, hidden]; with per_sample, a matrix
// per sample.
//
// If each step starts from Q' of the message before, repeated steps on similar tensors come near
// the best approximation of that rank. InvalidArgument unless the rank is below rows and columns of
// every message (LowRankMatricesOf). Runs on the calling thread, whatever `threads` says.
CpuEncode CpuLowRankEncode;
CpuDecode CpuLowRankDecode;

// Codec randomk: keeps K entries of each scope by random draws, zeros among them too. The seed is
// in the payload, so no index is sent. Element i draws number i of the seed's random stream; the K
// highest draws of each scope are kept, among elements with support. `unbiased` makes the tensor
// the mean over all seeds (Wangni et al., NeurIPS 2018).
CpuEncode CpuRandomKEncode;
CpuDecode CpuRandomKDecode;

// Codec uniform with rotation hadamard. The tensor is first rotated by random signs and an
// orthonormal Hadamard transform of each block. So an outlier's magnitude is shared by its block
// and does not set the range of all others (Suresh et al., ICML 2017, arXiv 1611.00429).
//
// The payload begins with the random key whose numbers are the signs. The rest is uniform's payload
// of the rotated tensor in fp32, which is rounded by the numbers of the key's complement.
CpuEncode CpuRotatedUniformEncode;
CpuDecode CpuRotatedUniformDecode;

// Codec threshold: keeps the entries of at least a magnitude. That may be a multiple of the
// message's root mean square or of its largest magnitude (Strom, Interspeech 2015, for the fixed
// one). It is computed in the order of docs/compression.md. The payload is that of entries.h, which
// has the decoder.
CpuEncode CpuThresholdEncode;

// Codec topk with indices of its own: keeps the K entries of largest magnitude of each scope, ties
// to the lower index. It is as published by Aji & Heafield, EMNLP 2017; per sample in arXiv
// 2401.07788, per tensor in 2301.02654. Zeros are never sent, so that a scope with fewer than K
// non-zeros arrives whole, unless pad is exact_k. With support, K still counts all elements of a
// scope, and only supported ones are chosen. The payload is that of entries.h, which has the
// decoder.
CpuEncode CpuTopKEncode;

// Codec uniform: every element as a code of 1 to 8 bits, on a grid over the range of its scope.
//
//   min_max      x^ = q / (2^b - 1) * (max - min) + min   (arXiv 2401.07788, "simple")
//   max_abs      x^ = q / (2^(b-1) - 1) * max|x|          symmetric, an odd number of levels
//   fixed_point  x^ = q / 2^(b-1) * s, s = max|x| in fp16, q in [-2^(b-1), 2^(b-1) - 1]  (AC-SGD)
//
// A constant scope is exact under min_max and max_abs, a constant tensor under all three. The fp16
// scales are of values multiplied by one power of two per message, so tiny gradients survive.

// Without rotation; CpuRotatedUniformEncode has it.
CpuEncode CpuUniformEncode;
CpuDecode CpuUniformDecode;

}  // namespace thinwire
