// AdamW; contract in nn/ops.h. Each operation is rounded by itself, so all instruction sets agree.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void AdamW(int threads, const AdamWUpdate& arguments);

}  // namespace thinwire::cpu
