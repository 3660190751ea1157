// Measurement of stages, of the links between them and of codecs.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/fleet/fleet.h"
#include "proto/doctor.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns a resolved experiment of `stages` stages, for stages that are started for the
// measurement.
absl::StatusOr<Experiment> DoctorsExperiment(int stages);

// Returns the links that a run uses, of which nothing is measured yet: those between neighbours,
// carrier by carrier, then those between each two carriers, stage by stage.
std::vector<LinkHealth> LinksAmong(int carriers, int stages);

// Leases each stage that answers within `patience` and asks it. Measures the links of LinksAmong
// whose ends both answered, one link after the other. Then frees all stages. A failure becomes the
// `error` of the stage or link that it belongs to.
void MeasureStages(Fleet* fleet, absl::Duration patience, Diagnosis* diagnosis);

// Measures common codecs by MeasureCodings, on one thread of this machine.
absl::StatusOr<std::vector<CodecOffer>> MeasureOffers();

}  // namespace thinwire
