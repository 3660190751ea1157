#include "coordinator/commands/doctor_command.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/build_info.h"
#include "base/status.h"
#include "coordinator/doctor/diagnosis.h"
#include "coordinator/doctor/measure.h"
#include "coordinator/files/json.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

constexpr int kLocalStages = 2;

// Returns the addresses of --stages in order; none if there are none.
absl::StatusOr<std::vector<std::string>> Addresses(const std::vector<std::string>& stages) {
  ASSIGN_OR_RETURN(const StageAddresses named, StageAddresses::Parse(stages));
  if (named.empty()) return std::vector<std::string>();
  if (!named.count()) {
    return absl::InvalidArgumentError(
        "an open range, want one that says how many stages there are");
  }
  return named.For(*named.count());
}

absl::StatusOr<Diagnosis> Examine(const DoctorFlags& flags, Interruption* interruption) {
  ASSIGN_OR_RETURN(const Experiment experiment, DoctorsExperiment(kLocalStages));
  Diagnosis diagnosis;
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

}  // namespace

int DoctorCommand(const DoctorFlags& flags, Interruption* interruption) {
  DoctorFlags found = flags;
  const auto addresses = Addresses(flags.session.stages);
  if (!addresses.ok()) {
    return Complain(absl::Status(addresses.status().code(),
                                 absl::StrCat("--stages: ", addresses.status().message())),
                    kExitUsage);
  }
  found.session.stages = *addresses;
  const absl::StatusOr<Diagnosis> diagnosis = Examine(found, interruption);
  if (interruption->seen()) return kExitInterrupted;
  if (!diagnosis.ok()) {
    return Complain(diagnosis.status(),
                    absl::IsInvalidArgument(diagnosis.status()) ? kExitUsage : kExitFailed);
  }
  const ExitCode printed =
      PrintResult(flags.format == "json" ? JsonText(ToJson(*diagnosis), 2) + "\n"
                                         : FormatDiagnosis(*diagnosis));
  return diagnosis->problems().empty() ? printed : kExitFailed;
}

}  // namespace thinwire
