// Layer norm; contracts in nn/ops.h.
//
// A row is read three times: for its mean, for its variance, to normalise. Sums along a row are
// taken in fp32, one per lane of a vector. Sums over rows (dscale, dbias) run over tiles of a fixed
// number of rows in fp32 and over these in fp64, so they do not depend on the thread count.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void NormalizeRows(int threads, const LayerNormForward& arguments);
void NormalizeRowsBackward(int threads, const LayerNormBackward& arguments);

}  // namespace thinwire::cpu
