// Provenance: what a run's summary says about where it ran.
#pragma once

#include <vector>

#include "coordinator/fleet/fleet.h"
#include "coordinator/fleet/stage_setup.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Adds the stages' answers to Acquire, and the compute threads of each.
void RecordBuilds(const std::vector<AcquireResponse>& answers, const std::vector<int>& threads,
                  Provenance* provenance);

// Warns the user, once, of a stage that runs another build than the first.
void WarnOfOtherBuilds(const Provenance& provenance, Fleet* fleet);

// Adds the number of parameters, the data and the devices.
void RecordConfigured(const Configured& configured, Summary* summary);

// Warns the user, once, of a stage on a GPU whose libraries are not those of the first such stage:
// they may compute with other bits.
void WarnOfOtherLibraries(const Provenance& provenance, Fleet* fleet);

}  // namespace thinwire
