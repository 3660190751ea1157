#include "coordinator/fleet/stage_setup.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "config/specs.h"

namespace thinwire {
namespace {

std::string Data(const StageClient& stage, const ConfigureResponse& data) {
  return absl::StrFormat(
      "%s has %d training samples (digest %016x) and %d test samples (digest %016x)", stage.Name(),
      data.train_samples(), data.train_digest(), data.test_samples(), data.test_digest());
}

bool SameData(const ConfigureResponse& a, const ConfigureResponse& b) {
  return a.train_digest() == b.train_digest() && a.test_digest() == b.test_digest() &&
         a.train_samples() == b.train_samples() && a.test_samples() == b.test_samples();
}

// Returns the first server, of all or of one stage, that is no guest; if all are, the first one.
int FirstOfOwn(const Fleet& fleet, int begin, int step) {
  for (int i = begin; i < fleet.size(); i += step) {
    if (!fleet.IsGuest(i)) return i;
  }
  return begin;
}

// Returns the addresses of the servers of another stage that this one is linked with, in order of
// carriers.
std::vector<std::string> LinkedWith(Fleet* fleet, const StageClient& stage, int other_stage,
                                    int replicas) {
  const Pipelines& pipelines = fleet->pipelines();
  if (pipelines.stage_carriers.empty()) {
    return {fleet->stage(other_stage, stage.carrier()).address()};
  }
  std::vector<std::string> addresses;
  for (const int carrier : Sharing(pipelines.GridOf(stage.stage()), stage.carrier(),
                                   pipelines.GridOf(other_stage), replicas)) {
    addresses.push_back(fleet->stage(other_stage, carrier).address());
  }
  return addresses;
}

// Checks that all that read data, the first and the last stages, read the same.
absl::Status CheckData(const std::vector<ConfigureResponse>& answers, Fleet* fleet) {
  const int first = FirstOfOwn(*fleet, 0, fleet->stages());
  const ConfigureResponse& of_first = answers[static_cast<size_t>(first)];
  for (int i = 0; i < fleet->size(); ++i) {
    const ConfigureResponse& answer = answers[static_cast<size_t>(i)];
    const int stage = fleet->server(i).stage();
    const bool reads = answer.train_samples() > 0 || stage == 0 || stage + 1 == fleet->stages();
    if (!reads || SameData(of_first, answer)) continue;
    return fleet->OfGuest(
        i, absl::FailedPreconditionError(
               absl::StrCat("stages read different data: ", Data(fleet->server(first), of_first),
                            ", ", Data(fleet->server(i), answer))));
  }
  return absl::OkStatus();
}

// Checks that a stage's carriers compute on devices of one kind: on others their updates would
// round apart.
absl::Status CheckDevices(const std::vector<ConfigureResponse>& answers, Fleet* fleet) {
  for (int i = 0; i < fleet->size(); ++i) {
    const StageClient& other = fleet->server(i);
    const StageClient& first = fleet->server(FirstOfOwn(*fleet, other.stage(), fleet->stages()));
    const DeviceInfo& of_first = answers[static_cast<size_t>(first.server())].device();
    const DeviceInfo& of_other = answers[static_cast<size_t>(i)].device();
    if (of_first.model() == of_other.model()) continue;
    const auto spelled = [](const DeviceInfo& device) {
      return device.model().empty() ? device.name()
                                    : absl::StrCat(device.name(), " ", device.model());
    };
    return fleet->OfGuest(
        i, absl::FailedPreconditionError(absl::StrCat(
               "carriers of one stage compute on different devices: ", first.Name(), " on ",
               spelled(of_first), ", ", other.Name(), " on ", spelled(of_other),
               "; want devices of one model, as other ones round their updates otherwise")));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int> ThreadsPerStage(const std::string& threads, int microbatches,
                                 const std::vector<StageHost>& stages) {
  int fixed = 0;
  if (absl::SimpleAtoi(threads, &fixed)) return std::vector<int>(stages.size(), fixed);
  std::map<std::string, int> stages_on;
  for (const StageHost& stage : stages) ++stages_on[stage.host];
  std::vector<int> result;
  for (const StageHost& stage : stages) {
    const int at_once = std::min(stages_on[stage.host], microbatches);
    result.push_back(std::max(1, stage.cores / at_once));
  }
  return result;
}

std::string HostOf(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return "";
  return address.substr(0, address.rfind(':'));
}

std::vector<int> StageThreads(const Experiment& experiment, Fleet* fleet,
                              const std::vector<AcquireResponse>& answers) {
  std::vector<StageHost> hosts;
  for (int i = 0; i < fleet->size(); ++i) {
    hosts.push_back({HostOf(fleet->server(i).address()), static_cast<int>(answers[i].cores())});
  }
  const int at_once = fleet->carriers() * static_cast<int>(UnitsOf(experiment));
  std::vector<int> threads = ThreadsPerStage(experiment.pipeline().threads(), at_once, hosts);
  // What a stage computes may depend on its threads, and its carriers have to compute the same.
  for (int i = 0; i < fleet->size(); ++i) {
    int& of_stage = threads[static_cast<size_t>(fleet->server(i).stage())];
    of_stage = std::min(of_stage, threads[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < fleet->size(); ++i) {
    threads[static_cast<size_t>(i)] = threads[static_cast<size_t>(fleet->server(i).stage())];
  }
  return threads;
}

absl::StatusOr<Configured> ConfigureStages(const Experiment& experiment,
                                           const std::vector<int>& threads, Fleet* fleet,
                                           const StagePurpose& purpose) {
  std::vector<ConfigureResponse> answers(static_cast<size_t>(fleet->size()));
  RETURN_IF_ERROR(fleet->OnAll([&](StageClient& stage) {
    auto answer =
        stage.Configure(experiment, threads[stage.server()], fleet->link_secret(), purpose);
    if (answer.ok()) answers[stage.server()] = *answer;
    if (fleet->TakesOtherDeal(stage.server(), answer.status())) return absl::OkStatus();
    return fleet->OfGuest(stage.server(), answer.status());
  }));
  RETURN_IF_ERROR(fleet->CheckDeal());
  RETURN_IF_ERROR(CheckData(answers, fleet));
  RETURN_IF_ERROR(CheckDevices(answers, fleet));
  ASSIGN_OR_RETURN(const ScheduleKind schedule, ScheduleFrom(experiment));
  const bool is_ring = Interleaves(schedule) && fleet->stages() > 1;
  const int replicas = static_cast<int>(ReplicasOf(experiment));
  RETURN_IF_ERROR(fleet->OnAll([fleet, is_ring, replicas](StageClient& stage) {
    const int next = (stage.stage() + 1) % fleet->stages();
    std::vector<std::string> carriers;
    const int count = fleet->pipelines().CarriersOf(stage.stage());
    for (int carrier = 0; count > 1 && carrier < count; ++carrier) {
      carriers.push_back(fleet->stage(stage.stage(), carrier).address());
    }
    std::vector<std::string> downstream;
    if (next > 0 || is_ring) downstream = LinkedWith(fleet, stage, next, replicas);
    return stage.Connect(downstream, LinkedWith(fleet, stage, fleet->stages() - 1, replicas),
                         carriers);
  }));
  Configured configured;
  configured.data = answers.front();
  if (fleet->options().on_configured) fleet->options().on_configured(answers);
  for (int i = 0; i < fleet->size(); ++i) {
    const ConfigureResponse& answer = answers[static_cast<size_t>(i)];
    if (fleet->server(i).carrier() == 0) configured.parameters += answer.parameters();
    configured.devices.push_back(answer.device());
    configured.are_kept.push_back(answer.is_kept());
  }
  return configured;
}

}  // namespace thinwire
