// A `thinwire run` that another command starts as a process of its own.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/session.h"

namespace thinwire {

// The arguments of this program that begin the run of the file `experiment` in `folder`, or go on
// with the one that stands there. `stages`: the stage servers, "HOST:PORT,HOST:PORT"; empty: the
// run starts its own. Of `session` what is said of servers counts, but not which they are.
std::vector<std::string> RunArguments(const std::string& experiment, const std::string& folder,
                                      const std::string& stages, const SessionOptions& session);

// Why a run that ended like that did not finish: its own words, which stand last in its log but for
// what other stages said, or how it ended.
std::string WhyRunFailed(int wait_status, const std::string& log);

}  // namespace thinwire
