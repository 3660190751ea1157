// The metrics of runs that are processes of their own, shown by the server that started them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace thinwire {

// What http://ADDRESS/metrics says, host:port with an IPv4 address or a name of this machine's.
// Unavailable unless all of it came within `patience`.
absl::StatusOr<std::string> Scrape(const std::string& address, absl::Duration patience);

// Several texts of Prometheus' format as one in which each family stands once, with the samples of
// all: the format allows no second one. Families of the process, `process_*`, are left out: they
// carry no `run`, and would be taken for this process's. Lines before the first family are, too.
std::string MergeExpositions(const std::vector<std::string>& texts);

}  // namespace thinwire
