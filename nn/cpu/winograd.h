// Convolutions with kernels of 3 x 3 and stride 1 by a quarter of the multiplications: F(4 x 4,
// 3 x 3) of Lavin & Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.
#pragma once

#include <memory>

#include "nn/cpu/onednn.h"
#include "nn/ops.h"

namespace thinwire::cpu {

// Whether a convolution can be computed so, and with at most half of the multiplications.
bool WinogradPays(const Conv2dSpec& spec);

// Wants WinogradPays(spec). Only gradients of weights depend on the number of threads. Rounds up
// to six times as coarsely as a direct convolution in fp32.
std::unique_ptr<Conv2d> NewWinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec);

}  // namespace thinwire::cpu
