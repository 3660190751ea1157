// Starting `thinwire run` as a separate process.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/session.h"

namespace thinwire {

// Returns the arguments of this program that run the file `experiment` in `folder`, or continue the
// run that is there. `stages` are the stage servers, "HOST:PORT,HOST:PORT"; empty: the run starts
// its own. The other options of `session` about servers apply; its stages are ignored.
std::vector<std::string> RunArguments(const std::string& experiment, const std::string& folder,
                                      const std::string& stages, const SessionOptions& session);

// Returns why a run that ended with `wait_status` did not finish: its own error, which is the last
// in its log besides what other stages said, or else how it ended.
std::string WhyRunFailed(int wait_status, const std::string& log);

}  // namespace thinwire
