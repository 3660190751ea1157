#include "coordinator/commands/plan_command.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/files/json.h"
#include "coordinator/plan/choices.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/report.h"
#include "coordinator/plan/state_plan.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/speeds/plan_speeds.h"

namespace thinwire {
namespace {

// The checked arguments.
struct Question {
  Experiment experiment;
  PlanAssumptions assumptions;
  Candidates candidates;  // empty without a link rate
  Speeds speeds;          // those that need no measurement
};

absl::Status CheckLinkIsGiven(const PlanFlags& flags) {
  const std::pair<const char*, bool> wanting[] = {{"--codec", !flags.codecs.empty()},
                                                  {"--microbatches", !flags.microbatches.empty()},
                                                  {"--schedule", !flags.schedules.empty()}};
  for (const auto& [flag, is_given] : wanting) {
    if (!is_given || flags.link_mbit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is for a given link: want --link_mbit too"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Candidates> CandidatesOf(const PlanFlags& flags, const Experiment& experiment) {
  if (!flags.link_mbit) return Candidates();
  ChoiceOptions options;
  options.codecs = flags.codecs;
  options.parameters = flags.parameters;
  options.microbatches = flags.microbatches;
  for (const std::string& name : flags.schedules) {
    const absl::StatusOr<TriedSchedule> schedule = ScheduleToTry(name);
    if (!schedule.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", schedule.status().message()));
    }
    options.schedules.push_back(*schedule);
  }
  return CandidatesFor(experiment, options);
}

absl::StatusOr<Question> Ask(const PlanFlags& flags) {
  RETURN_IF_ERROR(CheckLinkIsGiven(flags));
  Question question;
  PlanAssumptions& assumptions = question.assumptions;
  if (flags.link_mbit) assumptions.bits_per_second = {*flags.link_mbit * 1e6};
  assumptions.rtt_ms = flags.rtt_ms;
  assumptions.cores = flags.cores;
  const absl::Status nic = FromName(flags.nic, &assumptions.nic);
  if (!nic.ok()) return absl::InvalidArgumentError(absl::StrCat("--", nic.message()));
  RETURN_IF_ERROR(CheckAssumptions(assumptions));
  ASSIGN_OR_RETURN(question.experiment, LoadExperiment(flags.experiment, flags.overrides));
  ASSIGN_OR_RETURN(question.speeds, GivenSpeeds(flags.speeds, question.experiment));
  ASSIGN_OR_RETURN(question.candidates, CandidatesOf(flags, question.experiment));
  RETURN_IF_ERROR(PlanState(question.experiment).status());
  return question;
}

// Returns the threads of the stage to measure: one core if --cores is given and threads are auto,
// otherwise what the experiment says.
std::string ThreadsFor(const PlanFlags& flags, const Experiment& experiment) {
  const std::string& threads = experiment.pipeline().threads();
  return flags.cores > 0 && threads == "auto" ? "1" : threads;
}

absl::StatusOr<Speeds> SpeedsFor(const PlanFlags& flags, const Question& question,
                                 Interruption* interruption) {
  Speeds speeds = question.speeds;
  std::vector<const Experiment*> experiments = {&question.experiment};
  for (const Candidate& candidate : question.candidates.all) {
    experiments.push_back(&candidate.experiment);
  }
  RETURN_IF_ERROR(MeasureSpeeds(flags.speeds, experiments, ThreadsFor(flags, question.experiment),
                                flags.session, interruption, &speeds));
  return speeds;
}

}  // namespace

int PlanCommand(const PlanFlags& flags, Interruption* interruption) {
  const absl::StatusOr<Question> question = Ask(flags);
  if (!question.ok()) return Complain(question.status(), kExitUsage);
  const absl::StatusOr<Speeds> speeds = SpeedsFor(flags, *question, interruption);
  if (!speeds.ok() && interruption->seen()) return kExitInterrupted;
  if (!speeds.ok()) return Complain(speeds.status(), kExitFailed);
  const absl::StatusOr<Plan> plan = MakePlan(question->experiment, question->assumptions, *speeds);
  if (!plan.ok()) return Complain(plan.status(), kExitUsage);
  const auto choices = RankedChoices(question->candidates.all, question->assumptions, *speeds);
  if (!choices.ok()) return Complain(choices.status(), kExitUsage);
  const std::vector<std::string>& left_out = question->candidates.left_out;
  std::string text;
  if (flags.format == "json") {
    text = JsonText(ToJson(ReportOf(question->experiment.name(), *plan, *choices, left_out)), 2) +
           "\n";
  } else {
    text = FormatPlan(*plan);
    if (!choices->empty()) text += FormatChoices(*choices, left_out);
  }
  if (const ExitCode printed = PrintResult(text); printed != kExitDone) return printed;
  absl::Status fits = CheckMemory(plan->state, MachineMemoryBytes(), /*one_machine=*/false);
  fits.Update(CheckFolders(plan->state));
  return fits.ok() ? kExitDone : Complain(fits, kExitUsage);
}

}  // namespace thinwire
