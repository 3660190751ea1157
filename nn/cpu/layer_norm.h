// Layer norm; contracts in nn/ops.h.
//
// A row is read three times: for its mean, for its variance, and to normalise. Sums along a row are
// fp32, one per lane of a vector. Sums over rows (dscale, dbias) are fp32 within tiles of a fixed
// number of rows and fp64 over tiles. So they do not depend on the thread count.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void NormalizeRows(int threads, const LayerNormForward& arguments);
void NormalizeRowsBackward(int threads, const LayerNormBackward& arguments);

}  // namespace thinwire::cpu
