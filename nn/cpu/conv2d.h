// Convolution on oneDNN; contract in nn/ops.h.
#pragma once

#include <memory>

#include "nn/cpu/weighted.h"
#include "nn/ops.h"

namespace thinwire::cpu {

std::unique_ptr<WeightedKind> NewConv2dKind(OneDnn* onednn, const Conv2dSpec& spec);

}  // namespace thinwire::cpu
