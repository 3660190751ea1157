#include "coordinator/run/new_course.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/differences.h"
#include "config/specs.h"
#include "nn/lr_schedule.h"

namespace thinwire {
namespace {

// Returns the learning rate of a step, counted from 1 through all epochs.
double RateAt(const LrScheduleSpec& schedule, uint64_t step, uint64_t steps_per_epoch) {
  const auto epoch = static_cast<int64_t>((step - 1) / steps_per_epoch) + 1;
  return LearningRate(schedule, epoch, static_cast<int64_t>(step),
                      static_cast<int64_t>(steps_per_epoch));
}

std::string Shown(const std::string& value) { return value.empty() ? "absent" : value; }

std::string ChangedFields(const std::vector<FieldDifference>& differences) {
  return absl::StrCat(
      "goes on with ",
      absl::StrJoin(differences, ", ", [](std::string* out, const FieldDifference& field) {
        absl::StrAppend(out, field.path, " ", Shown(field.right), " (so far ", Shown(field.left),
                        ")");
      }));
}

// Returns "epochs 1 to 4", or "steps 1 to 7" if `step` is within an epoch.
std::string Past(uint64_t step, uint64_t steps_per_epoch) {
  if (step % steps_per_epoch != 0) return absl::StrCat("steps 1 to ", step);
  const uint64_t epochs = step / steps_per_epoch;
  return epochs == 1 ? "epoch 1" : absl::StrCat("epochs 1 to ", epochs);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> NewCourse(const Experiment& then, const Experiment& now,
                                                   uint64_t step, uint64_t steps_per_epoch) {
  std::vector<std::string> lines;
  const std::vector<FieldDifference> differences = Differences(then, now);
  if (!differences.empty()) lines.push_back(ChangedFields(differences));
  ASSIGN_OR_RETURN(const LrScheduleSpec before, LrScheduleFrom(then));
  ASSIGN_OR_RETURN(const LrScheduleSpec after, LrScheduleFrom(now));
  const bool trains_on = step > 0 && step < now.epochs() * steps_per_epoch;
  for (uint64_t i = 1; trains_on && i <= step; ++i) {
    if (RateAt(before, i, steps_per_epoch) == RateAt(after, i, steps_per_epoch)) continue;
    lines.push_back(
        absl::StrCat(Past(step, steps_per_epoch), " had another learning rate schedule; step ",
                     step + 1, ", of epoch ", step / steps_per_epoch + 1, ", trains at ",
                     RateAt(after, step + 1, steps_per_epoch), ", the step before trained at ",
                     RateAt(before, step, steps_per_epoch)));
    break;
  }
  return lines;
}

}  // namespace thinwire
