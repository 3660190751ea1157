#include "coordinator/plan_command.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/compute_speed.h"
#include "coordinator/exit_code.h"
#include "coordinator/files/json.h"
#include "coordinator/plan/choices.h"
#include "coordinator/plan/codec_speeds.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/report.h"
#include "coordinator/plan/run_speeds.h"
#include "coordinator/plan/state_plan.h"

namespace thinwire {
namespace {

// What the flags ask for, all of it right.
struct Question {
  Experiment experiment;
  PlanAssumptions assumptions;
  Candidates candidates;  // none without a link
  Speeds speeds;          // as far as they need not be measured
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
    ScheduleKind schedule;
    const absl::Status found = FromName(name, &schedule);
    if (!found.ok()) return absl::InvalidArgumentError(absl::StrCat("--", found.message()));
    options.schedules.push_back(schedule);
  }
  return CandidatesFor(experiment, options);
}

absl::Status SetGivenSpeeds(const PlanFlags& flags, const Experiment& experiment, Speeds* speeds) {
  if (!flags.from.empty()) {
    auto of_run = SpeedsOfRun(flags.from, experiment);
    if (!of_run.ok()) {
      return absl::Status(of_run.status().code(),
                          absl::StrCat("--from: ", of_run.status().message()));
    }
    *speeds = *std::move(of_run);
  }
  if (flags.gflops) {
    ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
    ASSIGN_OR_RETURN(speeds->blocks, BlocksAt(partition.model, *flags.gflops));
    speeds->compute_source = absl::StrFormat("%g GFLOP/s (--gflops)", *flags.gflops);
  }
  if (flags.codec_gbps) {
    ASSIGN_OR_RETURN(speeds->others, CodingAt(*flags.codec_gbps));
    speeds->codings.clear();
    speeds->codec_source =
        absl::StrFormat("%g GB/s to encode, and to decode (--codec_gbps)", *flags.codec_gbps);
  }
  return absl::OkStatus();
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
  RETURN_IF_ERROR(SetGivenSpeeds(flags, question.experiment, &question.speeds));
  ASSIGN_OR_RETURN(question.candidates, CandidatesOf(flags, question.experiment));
  RETURN_IF_ERROR(PlanState(question.experiment).status());
  return question;
}

// A core for each stage at a time, or as many as the experiment says.
std::string ThreadsFor(const PlanFlags& flags, const Experiment& experiment) {
  const std::string& threads = experiment.pipeline().threads();
  return flags.cores > 0 && threads == "auto" ? "1" : threads;
}

absl::Status MeasureCompute(const PlanFlags& flags, const Experiment& experiment,
                            Interruption* interruption, Speeds* speeds) {
  if (!speeds->blocks.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const ComputeSpeed speed,
      MeasureComputeSpeed(experiment, ThreadsFor(flags, experiment), flags.session, interruption));
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(speeds->blocks, BlocksAt(partition.model, speed.gflops));
  speeds->compute_source =
      absl::StrFormat("%.3g GFLOP/s, as training %s on this machine now took (--from, --gflops)",
                      speed.gflops, speed.by);
  return absl::OkStatus();
}

absl::Status MeasureCodecs(const PlanFlags& flags, const Question& question, Speeds* speeds) {
  if (flags.codec_gbps) return absl::OkStatus();
  const char* const kMeasured =
      "measured now, on one thread of this machine, on random tensors like those that cross";
  const size_t known = speeds->codings.size();
  RETURN_IF_ERROR(MeasureCodings(question.experiment, &speeds->codings));
  for (const Candidate& candidate : question.candidates.all) {
    RETURN_IF_ERROR(MeasureCodings(candidate.experiment, &speeds->codings));
  }
  if (flags.from.empty()) {
    speeds->codec_source = kMeasured;
  } else if (speeds->codings.size() > known) {
    absl::StrAppend(&speeds->codec_source, ", others ", kMeasured);
  }
  return absl::OkStatus();
}

absl::StatusOr<Speeds> SpeedsFor(const PlanFlags& flags, const Question& question,
                                 Interruption* interruption) {
  Speeds speeds = question.speeds;
  RETURN_IF_ERROR(MeasureCompute(flags, question.experiment, interruption, &speeds));
  interruption->OnFirst([] { _exit(kExitInterrupted); });  // there is nothing to end first
  RETURN_IF_ERROR(MeasureCodecs(flags, question, &speeds));
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
