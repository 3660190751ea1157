#include "coordinator/run/placed_stages.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "config/sections.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/fleet/stage_setup.h"
#include "coordinator/run/fitted_stages.h"
#include "coordinator/run/kept_state.h"

namespace thinwire {
namespace {

std::string Hex(uint64_t digest) { return absl::StrFormat("%016x", digest); }

// Returns "cuda:0 NVIDIA H200": one device for all stages, or a list.
std::string Together(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> names;
  for (const DeviceInfo& device : devices) {
    names.push_back(device.model().empty() ? device.name()
                                           : absl::StrCat(device.name(), " ", device.model()));
  }
  const bool all_alike =
      std::all_of(names.begin(), names.end(), [&](const auto& name) { return name == names[0]; });
  return all_alike ? names[0] : absl::StrJoin(names, ", ");
}

StageRecord StageRecordOf(const BuildInfo& build, int threads) {
  StageRecord record;
  record.set_commit(build.commit());
  record.set_build_id(build.build_id());
  record.set_cpu_model(build.cpu_model());
  record.set_simd_target(build.simd_target());
  record.set_onednn_isa(build.onednn_isa());
  record.set_threads(static_cast<uint32_t>(threads));
  *record.mutable_libraries() = build.libraries();
  return record;
}

// Prints a line that names two servers and what each has.
void WarnOfDifference(Fleet* fleet, const char* what, int one, const std::string& of_one, int other,
                      const std::string& of_other) {
  const std::string warning =
      absl::StrCat("warning: ", fleet->server(one).Name(), " ", what, " \"", of_one, "\", ",
                   fleet->server(other).Name(), " ", what, " \"", of_other, "\"");
  std::fprintf(stderr, "thinwire: %s\n", PrintableLine(warning).c_str());
}

// Adds the stages' answers to Acquire, and the compute threads of each.
void RecordBuilds(const std::vector<AcquireResponse>& answers, const std::vector<int>& threads,
                  Provenance* provenance) {
  for (size_t i = 0; i < answers.size(); ++i) {
    *provenance->add_stages() = StageRecordOf(answers[i].build(), threads[i]);
  }
  const StageRecord& first = provenance->stages(0);
  provenance->set_commit(first.commit());
  provenance->set_build_id(first.build_id());
  provenance->set_cpu_model(first.cpu_model());
  provenance->set_simd_target(first.simd_target());
  provenance->set_onednn_isa(first.onednn_isa());
  *provenance->mutable_libraries() = first.libraries();
  provenance->set_threads(first.threads());
}

// Warns the user, once, of a stage that runs another build than the first.
void WarnOfOtherBuilds(const Provenance& provenance, Fleet* fleet) {
  const std::string& first = provenance.stages(0).build_id();
  for (int i = 1; i < provenance.stages_size(); ++i) {
    const std::string& other = provenance.stages(i).build_id();
    if (other != first) return WarnOfDifference(fleet, "runs build", 0, first, i, other);
  }
}

// Warns the user, once, of a stage on a GPU whose libraries are not those of the first such stage:
// they may compute with other bits.
void WarnOfOtherLibraries(const Provenance& provenance, Fleet* fleet) {
  int first = -1;
  for (int i = 0; i < provenance.devices_size(); ++i) {
    const std::string& libraries = provenance.devices(i).libraries();
    if (libraries.empty()) continue;
    if (first < 0) first = i;
    const std::string& wanted = provenance.devices(first).libraries();
    if (libraries != wanted) return WarnOfDifference(fleet, "has", first, wanted, i, libraries);
  }
}

// Warns the user, once, of a server that computes with other instructions than its stage did
// before: with other bits then.
void WarnOfOtherInstructions(const Provenance& before, const std::vector<AcquireResponse>& answers,
                             Fleet* fleet) {
  for (int i = 0; i < fleet->size(); ++i) {
    const std::string& then = before.stages(fleet->server(i).stage()).onednn_isa();
    const std::string& now = answers[static_cast<size_t>(i)].build().onednn_isa();
    if (then == now) continue;
    const std::string warning = absl::StrCat("warning: ", fleet->server(i).Name(),
                                             " computes with \"", now, "\", its stage did with \"",
                                             then, "\": numbers will differ in their last bits");
    std::fprintf(stderr, "thinwire: %s\n", PrintableLine(warning).c_str());
    return;
  }
}

// Returns the compute threads of each server as the first pipeline had them before; empty: it had
// other stages.
std::vector<int> ThreadsAsBefore(const Provenance& provenance, const Fleet& fleet) {
  std::vector<int> threads;
  if (provenance.stages_size() < fleet.stages()) return threads;
  for (int i = 0; i < fleet.size(); ++i) {
    threads.push_back(
        static_cast<int>(provenance.stages(fleet.pipelines().PlaceOf(i).stage).threads()));
  }
  return threads;
}

// Adds the number of parameters, the data and the devices.
void RecordConfigured(const Configured& configured, Summary* summary) {
  summary->set_parameters(configured.parameters);
  summary->set_device(Together(configured.devices));
  Provenance& provenance = *summary->mutable_provenance();
  provenance.set_train_digest(Hex(configured.data.train_digest()));
  provenance.set_test_digest(Hex(configured.data.test_digest()));
  provenance.set_train_samples(configured.data.train_samples());
  provenance.set_test_samples(configured.data.test_samples());
  for (const DeviceInfo& device : configured.devices) {
    DeviceRecord& record = *provenance.add_devices();
    record.set_name(device.name());
    record.set_model(device.model());
    record.set_libraries(device.libraries());
  }
}

// Returns the experiment with what its blocks keep on these servers.
absl::StatusOr<Experiment> Fitted(const Experiment& experiment, Fleet* fleet,
                                  const std::vector<AcquireResponse>& answers) {
  std::vector<ServerMemory> servers;
  for (int i = 0; i < fleet->size(); ++i) {
    const StageClient& server = fleet->server(i);
    servers.push_back({server.stage(), HostOf(server.address()), answers[i].memory_bytes()});
  }
  return FitToServers(experiment, fleet->pipelines().LeastCarriers(), servers,
                      [](const std::string& line) {
                        std::fprintf(stderr, "thinwire: %s\n", PrintableLine(line).c_str());
                      });
}

}  // namespace

absl::StatusOr<PlacedStages> PlaceStages(const Experiment& experiment, const TraceSteps* trace,
                                         const std::optional<StageStanding>& reported, Fleet* fleet,
                                         Summary* summary) {
  Provenance* provenance = summary->mutable_provenance();
  // What a stage computes may depend on its threads, and the others' numbers are to stay.
  std::vector<int> threads;
  if (HasOpenMembership(experiment)) threads = ThreadsAsBefore(*provenance, *fleet);
  std::vector<AcquireResponse> answers;
  RETURN_IF_ERROR(fleet->Acquire(&answers));
  if (!threads.empty()) WarnOfOtherInstructions(*provenance, answers, fleet);
  provenance->clear_stages();
  provenance->clear_devices();
  if (threads.empty()) threads = StageThreads(experiment, fleet, answers);
  provenance->set_microbatches(experiment.pipeline().microbatches());
  RecordBuilds(answers, threads, provenance);
  WarnOfOtherBuilds(*provenance, fleet);
  ASSIGN_OR_RETURN(const Experiment fitted, Fitted(experiment, fleet, answers));
  StagePurpose purpose;
  purpose.trace = trace;
  std::optional<StageStanding> common;
  if (reported) common = CommonStanding(answers, fleet->stages(), *reported);
  if (common) purpose.standing = &*common;
  ASSIGN_OR_RETURN(Configured configured, ConfigureStages(fitted, threads, fleet, purpose));
  if (common && !HasEachStage(configured.are_kept, fleet->stages())) {
    common.reset();
    purpose.standing = nullptr;
    ASSIGN_OR_RETURN(configured, ConfigureStages(fitted, threads, fleet, purpose));
  }
  PlacedStages placed;
  if (common) {
    placed.sources = StateSources(configured.are_kept, fleet->stages());
    RETURN_IF_ERROR(SpreadKeptState(common->step(), fleet, &placed.sources));
  }
  RecordConfigured(configured, summary);
  WarnOfOtherLibraries(*provenance, fleet);
  for (int i = 0; i < fleet->size(); ++i) {
    placed.stages.push_back(
        {MetricsTarget(fleet->server(i).address(), answers[i].metrics_address())});
  }
  const auto least = std::min_element(
      answers.begin(), answers.end(),
      [](const auto& a, const auto& b) { return a.memory_bytes() < b.memory_bytes(); });
  placed.least_memory_bytes = least->memory_bytes();
  placed.data = configured.data;
  if (common) placed.kept_step = common->step();
  return placed;
}

}  // namespace thinwire
