#include "coordinator/fleet/stage_setup.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "config/specs.h"
#include "coordinator/fleet/threads.h"

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

}  // namespace

std::vector<int> StageThreads(const Experiment& experiment, Fleet* fleet,
                              const std::vector<AcquireResponse>& answers) {
  std::vector<StageHost> hosts;
  for (int i = 0; i < fleet->size(); ++i) {
    hosts.push_back({HostOf(fleet->stage(i).address()), static_cast<int>(answers[i].cores())});
  }
  return ThreadsPerStage(experiment.pipeline().threads(), static_cast<int>(UnitsOf(experiment)),
                         hosts);
}

absl::StatusOr<Configured> ConfigureStages(const Experiment& experiment,
                                           const std::vector<int>& threads, Fleet* fleet,
                                           const StagePurpose& purpose) {
  std::vector<ConfigureResponse> answers(static_cast<size_t>(fleet->size()));
  RETURN_IF_ERROR(fleet->OnAll([&](StageClient& stage) {
    auto answer =
        stage.Configure(experiment, threads[stage.stage()], fleet->link_secret(), purpose);
    if (answer.ok()) answers[stage.stage()] = *answer;
    return answer.status();
  }));
  for (size_t i = 1; i < answers.size(); ++i) {
    const bool reads = answers[i].train_samples() > 0 || i + 1 == answers.size();
    if (!reads || SameData(answers.front(), answers[i])) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("stages read different data: ", Data(fleet->stage(0), answers.front()), ", ",
                     Data(fleet->stage(static_cast<int>(i)), answers[i])));
  }
  ASSIGN_OR_RETURN(const ScheduleKind schedule, ScheduleFrom(experiment));
  const bool is_ring = Interleaves(schedule) && fleet->size() > 1;
  RETURN_IF_ERROR(fleet->OnAll([fleet, is_ring](StageClient& stage) {
    const int next = (stage.stage() + 1) % fleet->size();
    return stage.Connect(next == 0 && !is_ring ? "" : fleet->stage(next).address(),
                         fleet->stage(fleet->size() - 1).address());
  }));
  Configured configured;
  configured.data = answers.front();
  for (const ConfigureResponse& answer : answers) {
    configured.parameters += answer.parameters();
    configured.devices.push_back(answer.device());
  }
  return configured;
}

}  // namespace thinwire
