// Defaults and checks of an experiment's data.
#pragma once

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills in absent fields and checks every value; the general defaults must be filled in already. If
// the size of a text is neither given nor known, the text is read and counted. So the resolved
// experiment has it for readers without the text. Errors as in Resolve.
absl::Status ResolveData(DataConfig* data);

}  // namespace thinwire
