// `thinwire doctor`: whether stage servers and the links between them are fit for a run.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/annotated.h"
#include "base/build_info.h"
#include "base/status.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/doctor/diagnosis.h"
#include "coordinator/doctor/measure.h"
#include "coordinator/files/json.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/plan/captured_outliers.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"

namespace thinwire {
namespace {

struct DoctorFlags {
  SessionOptions session;
  double min_mbit = 10;         // of each link, in each direction
  std::string from;             // folder of a run with captures; empty: none
  std::string format = "text";  // or json
};

constexpr char kDoctorExamples[] =
    R"(Asks each stage server what it is and has, measures the links between neighbours by messages of
the data plane, and codecs on this machine, and says which codec would pay on which link and
what is wrong (docs/doctor.md). Of pipelines that carry replicas it also measures the links between
the servers of each stage. Without --stages: of two that it starts here. Some seconds for each link;
servers that a run has leased are left alone and named.

Examples:
  thinwire doctor
  thinwire doctor --stages 'node{1..4}:4700' --min_mbit 50
  thinwire doctor --stages a:4700,b:4700 --format json
  thinwire doctor --from runs/my
  thinwire doctor --stages 'r{0..1}s{0..1}:4700'
  thinwire doctor --stages 'stage-{0..3}:4700' --carriers 2
Exit codes: 0 nothing is wrong, 1 problems, 2 wrong usage, 130 interrupted.
)";

constexpr int kLocalStages = 2;

// Expands --stages to one address per stage of each carrier, and fills in the number of carriers.
absl::Status ExpandStages(SessionOptions* session) {
  ASSIGN_OR_RETURN(const StageAddresses named, StageAddresses::Parse(session->stages));
  if (named.empty()) return absl::OkStatus();
  if (!named.count()) {
    return absl::InvalidArgumentError(
        "an open range, want one that says how many stages there are");
  }
  StageAddresses::Grid grid = named.grid().value_or(StageAddresses::Grid());
  if (session->carriers > 0) grid.carriers = session->carriers;
  if (!named.grid()) grid.stages = std::max(1, *named.count() / grid.carriers);
  ASSIGN_OR_RETURN(session->stages, named.For(grid));
  session->carriers = grid.carriers;
  return absl::OkStatus();
}

absl::StatusOr<Diagnosis> Examine(const DoctorFlags& flags, Interruption* interruption) {
  ASSIGN_OR_RETURN(const Experiment experiment, DoctorsExperiment(kLocalStages));
  Diagnosis diagnosis;
  if (!flags.from.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> warnings, OutlierWarningsOfRun(flags.from));
    *diagnosis.mutable_warnings() = {warnings.begin(), warnings.end()};
  }
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                     Session::Start("doctor", experiment, flags.session, interruption));
    MeasureStages(session->fleet(), absl::Seconds(flags.session.wait_seconds), &diagnosis);
  }
  if (interruption->seen()) return absl::CancelledError("interrupted");
  ASSIGN_OR_RETURN(const std::vector<CodecOffer> offers, MeasureOffers());
  for (const CodecOffer& offer : offers) *diagnosis.add_codecs() = offer;
  HealthLimits limits;
  if (!flags.session.allow_other_build) limits.build = BuildId();
  limits.least_link_bits_per_second = flags.min_mbit * 1e6;
  Diagnose(limits, &diagnosis);
  return diagnosis;
}

int DoctorCommand(const DoctorFlags& flags, Interruption* interruption) {
  DoctorFlags found = flags;
  const absl::Status expanded = ExpandStages(&found.session);
  if (!expanded.ok()) return Complain(Annotated(expanded, "--stages"), kExitUsage);
  const absl::StatusOr<Diagnosis> diagnosis = Examine(found, interruption);
  if (interruption->seen()) return kExitInterrupted;
  if (!diagnosis.ok()) {
    const bool is_usage = absl::IsInvalidArgument(diagnosis.status()) ||
                          (!found.from.empty() && absl::IsNotFound(diagnosis.status()));
    return Complain(diagnosis.status(), is_usage ? kExitUsage : kExitFailed);
  }
  const ExitCode printed =
      PrintResult(flags.format == "json" ? JsonText(ToJson(*diagnosis), 2) + "\n"
                                         : FormatDiagnosis(*diagnosis));
  return diagnosis->problems().empty() ? printed : kExitFailed;
}

}  // namespace

Command AddDoctor(CLI::App* app) {
  const auto flags = std::make_shared<DoctorFlags>();
  CLI::App* doctor = app->add_subcommand(
      "doctor", "check stage servers; measure their links, and the codecs that pay on them");
  doctor->footer(kDoctorExamples);
  AddStages(doctor, &flags->session);
  doctor
      ->add_option("--carriers", flags->session.carriers,
                   "number of pipelines whose stages these are, one after the other (default: "
                   "that of two ranges in --stages, or 1)")
      ->check(CLI::Range(1, 1 << 16));
  doctor->add_option("--min_mbit", flags->min_mbit, "a slower link is a problem, Mbit/s of payload")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  doctor
      ->add_option("--from", flags->from,
                   "a run: warns of outliers in the activations that it captured (capture.steps), "
                   "where its codecs get them")
      ->transform(kPath);
  AddFormat(doctor, &flags->format);
  AddLaunch(doctor, &flags->session);
  return {doctor,
          [flags](Interruption* interruption) { return DoctorCommand(*flags, interruption); }};
}

}  // namespace thinwire
