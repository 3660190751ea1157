// Metrics of runs that are separate processes, for the server that started them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace thinwire {

// Returns the text of http://ADDRESS/metrics. `address` is host:port, with an IPv4 address or a
// name that this machine can resolve. Unavailable unless all of it comes within `patience`.
absl::StatusOr<std::string> Scrape(const std::string& address, absl::Duration patience);

// Merges several texts in Prometheus' format so that each metric family occurs once, with the
// samples of all texts, as the format demands. Families of the process, `process_*`, are left out:
// they carry no `run` label and would be taken for this process's. Lines before the first family
// are left out, too.
std::string MergeExpositions(const std::vector<std::string>& texts);

}  // namespace thinwire
