// Describes this server's build for the run's record.
#pragma once

#include "proto/stage.pb.h"

namespace thinwire {

BuildInfo ThisBuild();

}  // namespace thinwire
