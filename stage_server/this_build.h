// Build and instruction set of this process, for the run's record and for who must match it.
#pragma once

#include "proto/stage.pb.h"

namespace thinwire {

BuildInfo ThisBuild();

}  // namespace thinwire
