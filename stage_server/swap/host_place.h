// The host's memory as a place for a GPU's tensors: page-locked, so that its copy engines reach it
// beside the computation.
#pragma once

#include <memory>

#include "stage_server/swap/place.h"

namespace thinwire {

std::unique_ptr<SwapPlace> NewHostPlace();

}  // namespace thinwire
