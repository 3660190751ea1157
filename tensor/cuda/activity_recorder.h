// A recorder of activities (tensor/activity.h) that has them from CUPTI.
#pragma once

#include <cstddef>

#include "tensor/activity.h"

namespace thinwire {

// Makes a recorder of all GPUs of the process, which keeps up to `most` activities and is the
// caller's. Unavailable, with what was looked for, if there is no CUPTI.
Error NewCuptiRecorder(size_t most, ActivityRecorder** recorder);

}  // namespace thinwire
