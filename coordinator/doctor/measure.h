// What stages, the links between them and codecs are like, measured now.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/fleet/fleet.h"
#include "proto/doctor.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// What stages that are started for it are to be told: of so many, resolved.
absl::StatusOr<Experiment> DoctorsExperiment(int stages);

// Leases each stage that is there within `patience`, asks it, and measures the links between
// neighbours of which both are, one after the other; frees all of them again. What fails becomes
// the `error` of what it is of.
void MeasureStages(Fleet* fleet, absl::Duration patience, Diagnosis* diagnosis);

// The codecs that people compare, by MeasureCodings, on one thread of this machine.
absl::StatusOr<std::vector<CodecOffer>> MeasureOffers();

}  // namespace thinwire
