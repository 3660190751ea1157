// What measurements of stages, links and codecs mean.
#pragma once

#include <string>

#include "proto/doctor.pb.h"

namespace thinwire {

struct HealthLimits {
  std::string build;              // that all stages must be of; empty: any
  double most_clock_seconds = 1;  // that a clock may be apart from this machine's
  double least_link_bits_per_second = 10e6;
};

// Names the codec of each link's direction, by `codecs`, and adds the problems: stages that could
// not be asked, are of another build or whose clock is surely apart; links that could not be
// measured or are slow. Links of stages that have an error are not blamed too.
void Diagnose(const HealthLimits& limits, Diagnosis* diagnosis);

// As tables of at most 100 columns where names are short; problems last.
std::string FormatDiagnosis(const Diagnosis& diagnosis);

}  // namespace thinwire
