// Replaces the CUDA toolkit's header of this name.
#pragma once

#include "third_party/cuda_on_host/block.h"
#include "third_party/cuda_on_host/intrinsics.h"
#include "third_party/cuda_on_host/launch.h"
#include "third_party/cuda_on_host/runtime_api.h"
#include "third_party/cuda_on_host/types.h"
