// What an experiment says of its data.
#pragma once

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills what is absent and checks every value; defaults of every experiment stand there. A text
// whose size is neither given nor known is read and counted, so that whoever gets the resolved
// experiment knows it without the text. Errors as of Resolve.
absl::Status ResolveData(DataConfig* data);

}  // namespace thinwire
