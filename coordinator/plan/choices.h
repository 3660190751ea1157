// Codecs, numbers of microbatches and schedules, ranked by the step that they make of an
// experiment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"
#include "schedule/schedule.h"

namespace thinwire {

// A schedule, and where it has slices of sequences how many.
struct TriedSchedule {
  ScheduleKind kind;
  std::string slices = {};  // as an experiment has them; empty: the experiment's, or auto
};
// Of "1f1b", "terapipe:4" or "terapipe:auto"; InvalidArgument names the value.
absl::StatusOr<TriedSchedule> ScheduleToTry(const std::string& text);

// What is to be tried.
struct ChoiceOptions {
  std::vector<std::string> codecs;       // as ParseCodecPair has them, besides none and the own
  std::string parameters;                // JSON, of libraries among them
  std::vector<int64_t> microbatches;     // none: the experiment's, half and twice as many
  std::vector<TriedSchedule> schedules;  // none: all that the experiment allows
};

// One of them, as an experiment.
struct Candidate {
  std::string codec;     // as the user wrote it; "none", "the file's"
  std::string schedule;  // "terapipe:4" with slices, "terapipe:auto" where the user left them open
  Experiment experiment;
  bool is_own = false;              // as the user's experiment is
  bool other_microbatches = false;  // than the user's
};

struct Candidates {
  std::vector<Candidate> all;
  std::vector<std::string> left_out;  // lines: what cannot be, and why
};

// Every combination for the resolved `experiment`, its own compression and codec none included.
// InvalidArgument names the flag and the value: a codec that is none or goes with no combination, a
// number of microbatches beyond the batch.
absl::StatusOr<Candidates> CandidatesFor(const Experiment& experiment,
                                         const ChoiceOptions& options);

struct RankedChoice {
  std::string codec, schedule;
  int64_t microbatches = 1;
  bool is_own = false;
  // Batch norm, and other microbatches than the experiment's: it learns something else.
  bool learns_otherwise = false;
  double step_seconds = 0, samples_per_second = 0, bubble_ratio = 0;
  int64_t wire_bytes = 0;    // a step, likely, between processes
  int64_t memory_bytes = 0;  // of the stage that takes most, with feedback's state
};

// All of them at the first link rate of `assumptions`, fastest first; of equal ones that which
// sends less.
absl::StatusOr<std::vector<RankedChoice>> RankedChoices(const std::vector<Candidate>& candidates,
                                                        const PlanAssumptions& assumptions,
                                                        const Speeds& speeds);

// A table of at most 80 columns where codecs have short names.
std::string FormatChoices(const std::vector<RankedChoice>& choices,
                          const std::vector<std::string>& left_out);

}  // namespace thinwire
