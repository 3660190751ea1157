// Codec low_rank: one step of a power iteration, P = orthonormalised M Q, sent with Q' = M^T P
// (PowerSGD; Vogels et al., NeurIPS 2019). M is the tensor with its last axis as columns: images
// [batch * height * width, channels], sequences [batch * seq, hidden]; with per_sample, a matrix
// per sample.
//
// If each step starts from Q' of the message before, repeated steps on similar tensors come near
// the best approximation of that rank. InvalidArgument unless the rank is below rows and columns of
// every message (see MatricesOf).
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

// These run on the calling thread, whatever `threads` says.
CpuEncode CpuLowRankEncode;
CpuDecode CpuLowRankDecode;

}  // namespace thinwire
