// The linear layer on oneDNN; contract in nn/ops.h.
#pragma once

#include <memory>

#include "nn/cpu/weighted.h"
#include "nn/ops.h"

namespace thinwire::cpu {

std::unique_ptr<WeightedKind> NewLinearKind(OneDnn* onednn, const LinearSpec& spec);

}  // namespace thinwire::cpu
