// Dropout; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

Error Drop(int threads, const Dropout& arguments);

}  // namespace thinwire::cpu
