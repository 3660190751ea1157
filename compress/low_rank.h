// low_rank: one step of a power iteration, P = orthonormalised M Q, sent with Q' = M^T P
// (PowerSGD; Vogels et al., NeurIPS 2019). M is the tensor with its last axis as columns: images
// [batch * height * width, channels], sequences [batch * seq, hidden]; per_sample: a matrix each.
//
// Started from Q' of the message before, repeated steps on similar tensors come near to the best
// approximation of that rank. The rank must be below rows and columns of every message.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

std::unique_ptr<Codec> NewLowRankCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
