// Combinations of codec, number of microbatches and schedule, ranked by how long a step of the
// experiment takes with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"
#include "proto/plan.pb.h"
#include "schedule/schedule.h"

namespace thinwire {

// A schedule and, if it cuts sequences into slices, their number.
struct TriedSchedule {
  ScheduleKind kind;
  // As in an experiment's pipeline.slices; empty: the experiment's own, or auto.
  std::string slices = {};
};
// Parses "1f1b", "terapipe:4" or "terapipe:auto". InvalidArgument names the value.
absl::StatusOr<TriedSchedule> ScheduleToTry(const std::string& text);

// The values that the user wants tried.
struct ChoiceOptions {
  // As ParseCodecPair reads them; "none" and the experiment's own are always tried too.
  std::vector<std::string> codecs;
  std::string parameters;  // JSON parameters of the codecs, those of plug-in libraries included
  std::vector<int64_t> microbatches;     // empty: the experiment's number, half of it and twice it
  std::vector<TriedSchedule> schedules;  // empty: all that the experiment allows
};

// One combination, as an experiment.
struct Candidate {
  std::string codec;  // as the user wrote it; "none", "the file's"
  // "terapipe:4" with slices, "terapipe:auto" where the user left their number open.
  std::string schedule;
  Experiment experiment;
  bool is_own = false;              // True for the user's experiment unchanged.
  bool other_microbatches = false;  // True if the number differs from the user's.
};

struct Candidates {
  std::vector<Candidate> all;
  // A line for each combination that is impossible, with the reason.
  std::vector<std::string> left_out;
};

// Returns every combination for the resolved `experiment`, those with its own compression and with
// codec none included. InvalidArgument names the flag and the value: a codec that is none or that
// fits no combination, or a number of microbatches greater than the batch.
absl::StatusOr<Candidates> CandidatesFor(const Experiment& experiment,
                                         const ChoiceOptions& options);

// Ranks all `candidates` at the first link rate of `assumptions`, fastest first. Of equally fast
// ones the one that sends less comes first.
absl::StatusOr<std::vector<ChoiceEstimate>> RankedChoices(const std::vector<Candidate>& candidates,
                                                          const PlanAssumptions& assumptions,
                                                          const Speeds& speeds);

// Returns a table of at most 80 columns, provided that the codecs' names are short.
std::string FormatChoices(const std::vector<ChoiceEstimate>& choices,
                          const std::vector<std::string>& left_out);

}  // namespace thinwire
