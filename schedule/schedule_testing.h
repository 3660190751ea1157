// Schedules that tests train with.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace thinwire {

// Returns the names of the schedules that fit any model and any number of stages: those without
// several chunks of a stage and without slices of sequences.
inline std::vector<std::string> PlainSchedulesForTests() {
  std::vector<std::string> names;
  for (const ScheduleKind kind : AllOf<ScheduleKind>()) {
    if (!Interleaves(kind) && !Slices(kind)) names.emplace_back(Name(kind));
  }
  return names;
}

}  // namespace thinwire
