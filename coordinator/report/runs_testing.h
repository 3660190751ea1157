// Runs made up for tests.
#pragma once

#include <string>
#include <vector>

#include "coordinator/report/runs.h"

namespace thinwire {

// A completed run of `name`-seedN in "runs/", with an epoch of ten seconds for each accuracy, with
// codecs; without them it is five points lower. Its one cut sends 4 MB raw an epoch and direction,
// and `bits` of 32 of them.
ReportedRun MadeUpRun(const std::string& name, uint64_t seed, const std::vector<double>& accuracies,
                      double bits);

}  // namespace thinwire
