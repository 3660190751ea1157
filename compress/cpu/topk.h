// Codec topk with indices of its own: keeps the K entries of largest magnitude of each scope, ties
// to the lower index. It is as published by Aji & Heafield, EMNLP 2017; per sample in arXiv
// 2401.07788, per tensor in 2301.02654. Zeros are never sent, so that a scope with fewer than K
// non-zeros arrives whole, unless pad is exact_k. With support, K still counts all elements of a
// scope, and only supported ones are chosen. The payload is that of entries.h, which has the
// decoder.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuTopKEncode;

}  // namespace thinwire
