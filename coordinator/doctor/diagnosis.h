// Judgement of measured stages, links and codecs.
#pragma once

#include <string>

#include "proto/doctor.pb.h"

namespace thinwire {

// Limits beyond which a measurement is a problem.
struct HealthLimits {
  std::string build;              // build that all stages must have; empty: any
  double most_clock_seconds = 1;  // how far a stage's clock may be from this machine's
  double least_link_bits_per_second = 10e6;
};

// Names the best codec for each direction of each link, from the measured ones, and adds the
// problems. Problems are stages that could not be asked, that have another build or whose clock is
// certainly off, and links that could not be measured or are slow. A link of a stage with an error
// is not reported as well.
void Diagnose(const HealthLimits& limits, Diagnosis* diagnosis);

// Returns tables of at most 100 columns, if names are short, and then problems and warnings.
std::string FormatDiagnosis(const Diagnosis& diagnosis);

}  // namespace thinwire
