// Synthetic runs for tests.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/configurations.h"

namespace thinwire {

// Returns a completed run `name`-seedN in "runs/". It has an epoch of ten seconds for each of
// `accuracies`, which are those with codecs; without codecs accuracy is five points lower. Its one
// cut sends 4 MB raw per epoch and direction, of which `bits` of every 32 bits reach the wire.
ReportedRun MadeUpRun(const std::string& name, uint64_t seed, const std::vector<double>& accuracies,
                      double bits);

}  // namespace thinwire
