// AdamW; contract in nn/ops.h. Operations are rounded one by one, so every instruction set agrees.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void AdamW(int threads, const AdamWUpdate& arguments);

}  // namespace thinwire::cpu
