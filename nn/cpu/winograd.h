// Convolutions with 3 x 3 kernels and stride 1 with a quarter of the multiplications: F(4 x 4, 3 x
// 3) of Lavin & Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.
#pragma once

#include <memory>

#include "nn/cpu/onednn.h"
#include "nn/ops.h"

namespace thinwire::cpu {

// Returns whether a convolution can be computed so, with at most half of the multiplications.
bool WinogradPays(const Conv2dSpec& spec);

// Makes a convolution; requires WinogradPays(spec). Only weight gradients depend on the number of
// threads. Rounding errors are up to six times those of a direct convolution in fp32.
std::unique_ptr<Conv2d> NewWinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec);

}  // namespace thinwire::cpu
