// `thinwire plan`: what an experiment needs, and on a given link which codec, how many microbatches
// and which schedule make its steps fastest.

#include "coordinator/plan/plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/files/json.h"
#include "coordinator/plan/captured_outliers.h"
#include "coordinator/plan/choices.h"
#include "coordinator/plan/layouts.h"
#include "coordinator/plan/memory_plan.h"
#include "coordinator/plan/report.h"
#include "coordinator/plan/selected_stages.h"
#include "coordinator/plan/state_plan.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"

namespace thinwire {
namespace {

struct PlanFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  std::optional<double> link_mbit;     // without it several usual rates, and no choices
  NetworkFlags network;
  int carriers = 0;
  // Choices to try besides the experiment's own; want a link.
  std::vector<std::string> codecs;  // as ParseCodecPair has them
  std::string parameters;           // JSON for libraries among them
  std::vector<int64_t> microbatches;
  std::vector<std::string> schedules;
  // Number of machines on which to lay the experiment out; wants a link.
  std::optional<int> machines;
  std::vector<int64_t> parts;  // numbers of tensor-parallel parts to try
  std::optional<double> memory_gb, price_hour, price_gb;
  std::string memory;  // pipeline.memory, if it is given
  double swap_gbps = kAssumedSwapRate / 1e9;
  std::string save;  // path to which the first layout's experiment goes
  SpeedFlags speeds;
  std::string format = "text";  // text, json
  SessionOptions session;       // of the stage whose speed is measured
};

constexpr char kPlanExamples[] =
    R"(Without --link_mbit: step times of the experiment at some usual link rates. With it also a
table of codecs, microbatches and schedules on that link, fastest first, and with replicas the
segments whose exchange need not be compressed there. With --machines instead of
these a table of layouts: how many replicas of how many stages, of how many parts, with which codecs. Compute and codecs
are measured here in some seconds, or are those of a run (--from); docs/plan.md has the rest.

Examples:
  thinwire plan experiments/quickstart.yaml
  thinwire plan my.yaml --link_mbit 50 --rtt_ms 100 --codec 'topk(ratio=0.1)' \
      --codec 'uniform(bits=4) | uniform(bits=8)' --microbatches 1,2,4,8
  thinwire plan my.yaml --link_mbit 100 --from runs/short --format json
  thinwire plan my.yaml --link_mbit 100 --machines 8 --price_hour 0.40 --price_gb 0.09
  thinwire plan my.yaml --link_mbit 100 --machines 8 --save first.yaml
  thinwire plan my.yaml --link_mbit 10000 --machines 8 --parts 1,2,4
  thinwire plan my.yaml --memory 12GiB
A pair 'A | G' has A on activations and G on gradients.
Exit codes: 0 done, 1 a measurement failed, 2 wrong usage or experiment, 130 interrupted.
)";

// Question that the flags ask, checked.
struct Question {
  Experiment experiment;
  PlanAssumptions assumptions;
  Candidates candidates;  // empty without a link rate, and with --machines
  LayoutOptions layout;   // with --machines, like `layouts`
  Layouts layouts;
  Speeds speeds;                // those that need no measurement
  std::vector<int64_t> limits;  // of stages; empty: none
};

absl::Status CheckLinkIsGiven(const PlanFlags& flags) {
  const std::pair<const char*, bool> wanting[] = {{"--codec", !flags.codecs.empty()},
                                                  {"--microbatches", !flags.microbatches.empty()},
                                                  {"--schedule", !flags.schedules.empty()},
                                                  {"--machines", flags.machines.has_value()}};
  for (const auto& [flag, is_given] : wanting) {
    if (!is_given || flags.link_mbit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is for a given link: want --link_mbit too"));
  }
  return absl::OkStatus();
}

absl::Status CheckMachines(const PlanFlags& flags) {
  const std::pair<const char*, bool> wanting[] = {{"--parts", !flags.parts.empty()},
                                                  {"--memory_gb", flags.memory_gb.has_value()},
                                                  {"--price_hour", flags.price_hour.has_value()},
                                                  {"--price_gb", flags.price_gb.has_value()},
                                                  {"--save", !flags.save.empty()}};
  for (const auto& [flag, is_given] : wanting) {
    if (!is_given || flags.machines) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, ": want --machines too"));
  }
  if (flags.machines && !flags.memory.empty()) {
    return absl::InvalidArgumentError(
        "--memory with --machines: want --memory_gb, which ranks layouts by whether they fit");
  }
  const std::pair<const char*, bool> refusing[] = {{"--schedule", !flags.schedules.empty()},
                                                   {"--carriers", flags.carriers > 0}};
  for (const auto& [flag, is_given] : refusing) {
    if (!is_given || !flags.machines) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flag,
        " with --machines: want only one of them; layouts have a machine for each stage of "
        "each part of each replica, and the experiment's schedule"));
  }
  return absl::OkStatus();
}

LayoutOptions LayoutOptionsOf(const PlanFlags& flags) {
  LayoutOptions options;
  options.machines = *flags.machines;
  options.codecs = flags.codecs;
  options.parameters = flags.parameters;
  options.microbatches = flags.microbatches;
  options.parts = flags.parts;
  options.memory_bytes =
      flags.memory_gb ? 1e9 * *flags.memory_gb : static_cast<double>(MachineMemoryBytes());
  if (flags.price_hour || flags.price_gb) {
    options.prices = {flags.price_hour.value_or(0), flags.price_gb.value_or(0)};
  }
  return options;
}

absl::StatusOr<Candidates> CandidatesOf(const PlanFlags& flags, const Experiment& experiment) {
  if (!flags.link_mbit || flags.machines) return Candidates();
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
  RETURN_IF_ERROR(CheckMachines(flags));
  Question question;
  ASSIGN_OR_RETURN(question.assumptions, AssumptionsFrom(flags.link_mbit, flags.network));
  std::vector<std::string> overrides = flags.overrides;
  if (!flags.memory.empty()) overrides.push_back("pipeline.memory=" + flags.memory);
  ASSIGN_OR_RETURN(question.experiment, LoadExperiment(flags.experiment, overrides));
  ASSIGN_OR_RETURN(question.speeds, GivenSpeeds(flags.speeds, question.experiment));
  ASSIGN_OR_RETURN(question.candidates, CandidatesOf(flags, question.experiment));
  if (flags.machines) {
    question.layout = LayoutOptionsOf(flags);
    ASSIGN_OR_RETURN(question.layouts, LayoutsFor(question.experiment, question.layout));
  }
  question.assumptions.carriers = flags.carriers;
  question.assumptions.swap_bytes_per_second = 1e9 * flags.swap_gbps;
  RETURN_IF_ERROR(CheckAssumptions(question.assumptions));
  if (!flags.machines) {
    const std::vector<double> machines(question.experiment.pipeline().stages(),
                                       static_cast<double>(MachineMemoryBytes()));
    ASSIGN_OR_RETURN(question.limits, LimitsOf(question.experiment, machines));
  }
  ASSIGN_OR_RETURN(const Experiment replica, ReplicaOf(question.experiment));
  RETURN_IF_ERROR(PlanState(replica).status());
  return question;
}

// Returns the threads of the stage to measure: one core if --cores is given and threads are auto,
// otherwise what the experiment says.
std::string ThreadsFor(const PlanFlags& flags, const Experiment& experiment) {
  const std::string& threads = experiment.pipeline().threads();
  return flags.network.cores > 0 && threads == "auto" ? "1" : threads;
}

absl::StatusOr<Speeds> SpeedsFor(const PlanFlags& flags, const Question& question,
                                 Interruption* interruption) {
  Speeds speeds = question.speeds;
  std::vector<const Experiment*> experiments = {&question.experiment};
  for (const Candidate& candidate : question.candidates.all) {
    experiments.push_back(&candidate.experiment);
  }
  for (const Layout& layout : question.layouts.all) experiments.push_back(&layout.experiment);
  RETURN_IF_ERROR(MeasureSpeeds(flags.speeds, experiments, ThreadsFor(flags, question.experiment),
                                flags.session, interruption, &speeds));
  return speeds;
}

// Lets all experiments of `question` keep what the limits leave room for; returns how.
absl::StatusOr<std::optional<MemoryPlan>> Fit(const Speeds& speeds, Question* question) {
  if (question->limits.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(FittedExperiment fitted, FitMemory(question->experiment, question->assumptions,
                                                      speeds, question->limits));
  question->experiment = std::move(fitted.experiment);
  for (Candidate& candidate : question->candidates.all) {
    *candidate.experiment.mutable_pipeline()->mutable_keep() =
        question->experiment.pipeline().keep();
  }
  return std::make_optional(std::move(fitted.memory));
}

// Writes the first layout's experiment; returns how to run it.
absl::StatusOr<std::string> Save(const LayoutEstimate& first, const std::string& path) {
  RETURN_IF_ERROR(ReplaceFile(path, first.experiment()));
  const uint32_t carriers = first.replicas() * first.parts();
  return absl::StrCat("Saved: thinwire run ", path, " --carriers ", carriers,
                      " --stages 'machine-{0..", carriers * first.stages() - 1, "}:4700'\n");
}

int PlanCommand(const PlanFlags& flags, Interruption* interruption) {
  absl::StatusOr<Question> question = Ask(flags);
  if (!question.ok()) return Complain(question.status(), kExitUsage);
  const absl::StatusOr<Speeds> speeds = SpeedsFor(flags, *question, interruption);
  if (!speeds.ok() && interruption->seen()) return kExitInterrupted;
  if (!speeds.ok()) return Complain(speeds.status(), kExitFailed);
  const absl::StatusOr<std::optional<MemoryPlan>> memory = Fit(*speeds, &*question);
  if (!memory.ok()) return Complain(memory.status(), kExitUsage);
  absl::StatusOr<Plan> plan = MakePlan(question->experiment, question->assumptions, *speeds);
  if (!plan.ok()) return Complain(plan.status(), kExitUsage);
  const auto outliers = OutlierWarnings(flags.speeds.from, question->experiment);
  if (!outliers.ok()) return Complain(outliers.status(), kExitUsage);
  plan->warnings.insert(plan->warnings.end(), outliers->begin(), outliers->end());
  const auto choices = RankedChoices(question->candidates.all, question->assumptions, *speeds);
  if (!choices.ok()) return Complain(choices.status(), kExitUsage);
  const auto layouts =
      RankedLayouts(question->layouts.all, question->layout, question->assumptions, *speeds);
  if (!layouts.ok()) return Complain(layouts.status(), kExitUsage);
  std::optional<SelectedStages> selected;
  if (flags.link_mbit && !flags.machines) {
    const auto chosen = SelectStages(question->experiment, question->assumptions, *speeds);
    if (!chosen.ok()) return Complain(chosen.status(), kExitUsage);
    selected = *chosen;
  }
  const std::vector<std::string>& left_out =
      flags.machines ? question->layouts.left_out : question->candidates.left_out;
  std::string saved;
  if (!flags.save.empty()) {
    absl::StatusOr<std::string> how = Save(layouts->front(), flags.save);
    if (!how.ok()) return Complain(how.status(), kExitUsage);
    saved = *std::move(how);
  }
  std::string text;
  if (flags.format == "json") {
    PlanReport report =
        ReportOf(question->experiment.name(), *plan, *choices, *layouts, left_out, selected);
    if (*memory) *report.mutable_memory() = **memory;
    text = JsonText(ToJson(report), 2) + "\n";
  } else if (flags.machines) {
    text = FormatLayouts(*layouts, question->layout, left_out, *plan) + saved;
  } else {
    text = FormatPlan(*plan);
    if (*memory) text += FormatMemory(**memory, *plan);
    if (selected) {
      text += FormatSelected(*selected, plan->exchange.way == ReplicaExchange::kGather);
    }
    if (!choices->empty()) text += FormatChoices(*choices, left_out);
  }
  if (const ExitCode printed = PrintResult(text); printed != kExitDone) return printed;
  if (flags.machines) return kExitDone;
  absl::Status fits = CheckMemory(plan->state, MachineMemoryBytes(), /*one_machine=*/false);
  fits.Update(CheckFolders(plan->state));
  return fits.ok() ? kExitDone : Complain(fits, kExitUsage);
}

void AddChoices(CLI::App* plan, PlanFlags* flags) {
  plan->add_option("--codec", flags->codecs,
                   "a codec, or a pair 'A | G', to try on the link: its text, or the path of a "
                   "library; may stand often. The experiment's and none always are tried")
      ->allow_extra_args(false);
  plan->add_option("--parameters", flags->parameters, "JSON handed to libraries");
  plan->add_option("--microbatches", flags->microbatches,
                   "numbers of microbatches to try on the link, as 1,2,4 (default: the "
                   "experiment's, half and twice as many)")
      ->delimiter(',')
      ->allow_extra_args(false);
  plan->add_option("--schedule", flags->schedules,
                   "schedules to try on the link, as gpipe,terapipe:4 with 4 slices (default: all "
                   "that the experiment allows)")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void AddMachines(CLI::App* plan, PlanFlags* flags) {
  plan->add_option("--machines", flags->machines,
                   "lay the experiment out on so many machines, a replica of its pipeline on each "
                   "part of them, and rank the layouts on the link")
      ->check(CLI::Range(1, 1 << 10));
  plan->add_option("--parts", flags->parts,
                   "numbers of tensor-parallel parts to try, as 1,2,4 (default: 1, or all that "
                   "divide the machines and the model if the experiment has parts)")
      ->delimiter(',')
      ->allow_extra_args(false);
  plan->add_option("--memory_gb", flags->memory_gb,
                   "memory of each machine, 10^9 bytes (default: that of this one)");
  plan->add_option("--save", flags->save, "file to which the first layout's experiment goes");
  plan->add_option("--price_hour", flags->price_hour,
                   "price of a machine and hour: layouts are ranked by what an epoch costs");
  plan->add_option("--price_gb", flags->price_gb,
                   "price of 10^9 bytes that a machine sends: likewise");
}

}  // namespace

Command AddPlan(CLI::App* app) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App* plan = app->add_subcommand(
      "plan",
      "show cuts, sizes, bytes and step times, and what is fastest on a link; trains nothing");
  plan->footer(kPlanExamples);
  AddExperiment(plan, &flags->experiment, &flags->overrides);
  plan->add_option(
      "--link_mbit", flags->link_mbit,
      "rate of every host's interface in each direction, Mbit/s; inf: infinitely fast");
  AddNetwork(plan, &flags->network);
  plan->add_option("--carriers", flags->carriers,
                   "machines of each stage, which carry the experiment's replicas and their parts "
                   "(default: one for each part of each replica)")
      ->check(CLI::Range(1, 1 << 16));
  AddChoices(plan, flags.get());
  AddMachines(plan, flags.get());
  plan->add_option(
      "--memory", flags->memory,
      "memory of each stage, as 12GiB, or auto: say what each block does about what it "
      "keeps, so that all fit (default: pipeline.memory)");
  plan->add_option("--swap_gbps", flags->swap_gbps,
                   "rate at which a stage writes and reads what it swaps, gigabytes per second")
      ->capture_default_str();
  AddSpeeds(plan, &flags->speeds);
  AddFormat(plan, &flags->format);
  plan->add_option(
      "--stage_server", flags->session.stage_server,
      "stage server binary whose speed is measured (default: the one beside thinwire)");
  AddOtherBuild(plan, &flags->session);
  return {plan, [flags](Interruption* interruption) { return PlanCommand(*flags, interruption); }};
}

}  // namespace thinwire
