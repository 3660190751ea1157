#include "coordinator/session.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/build_info.h"
#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/fleet/local_launch.h"
#include "coordinator/fleet/stage_addresses.h"

namespace thinwire {
namespace {

// Unique among the runs of one name.
std::string NewRunId(const std::string& name) {
  std::random_device random;
  return absl::StrFormat("%s-%08x", name, random());
}

// What the command's flags name, and for the rest what the experiment does.
SecurityOptions SecurityOf(const SecurityConfig& config, SecurityOptions flags) {
  const auto take = [](const std::string& path, std::string* to) {
    if (to->empty()) *to = path;
  };
  take(config.tls_cert(), &flags.tls_cert);
  take(config.tls_key(), &flags.tls_key);
  take(config.tls_ca(), &flags.tls_ca);
  take(config.token_file(), &flags.token_file);
  return flags;
}

absl::Status InStages(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("--stages: ", status.message()));
}

}  // namespace

absl::StatusOr<Experiment> LoadForStages(const std::string& path,
                                         const std::vector<std::string>& overrides,
                                         SessionOptions* options) {
  const absl::StatusOr<StageAddresses> named = StageAddresses::Parse(options->stages);
  if (!named.ok()) return InStages(named.status());
  ASSIGN_OR_RETURN(
      Experiment experiment,
      LoadExperiment(path, overrides, static_cast<uint32_t>(named->count().value_or(0))));
  if (named->empty()) return experiment;
  absl::StatusOr<std::vector<std::string>> all =
      named->For(static_cast<int>(experiment.pipeline().stages()));
  if (!all.ok()) return InStages(all.status());
  options->stages = *std::move(all);
  return experiment;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Start(const std::string& name,
                                                        const Experiment& experiment,
                                                        const SessionOptions& options,
                                                        Interruption* interruption) {
  std::unique_ptr<Session> session(new Session(NewRunId(name), interruption));
  std::vector<std::string> addresses = options.stages;
  FleetOptions fleet_options;
  if (!options.allow_other_build) fleet_options.build = BuildId();
  fleet_options.patience = absl::Seconds(options.wait_seconds);
  fleet_options.say_waiting = options.say_waiting;
  if (addresses.empty()) {
    RETURN_IF_ERROR(session->Launch(name, experiment, options));
    addresses = session->local_->addresses();
    fleet_options.are_watched = true;
  } else {
    ASSIGN_OR_RETURN(fleet_options.security,
                     Security::Load(SecurityOf(experiment.security(), options.security)));
  }
  session->fleet_ = std::make_unique<Fleet>(addresses, session->run_, fleet_options);
  Fleet* fleet = session->fleet_.get();
  interruption->OnFirst([fleet] { fleet->Interrupt(); });
  if (session->local_) {
    session->local_->Watch([fleet](Failure failure) { fleet->Fail(std::move(failure)); });
  }
  return session;
}

absl::Status Session::Launch(const std::string& name, const Experiment& experiment,
                             const SessionOptions& options) {
  std::string logs_dir = options.logs_dir;
  if (logs_dir.empty()) {
    ASSIGN_OR_RETURN(logs_, TemporaryFolder::Make("thinwire-" + name));
    logs_dir = logs_->path();
  }
  ASSIGN_OR_RETURN(LaunchOptions launch,
                   LocalLaunch(experiment, options.stage_server, options.libraries));
  launch.cuda_plugin = options.cuda_plugin;
  launch.logs_dir = logs_dir;
  launch.interrupt_fd = interruption_.fd();
  ASSIGN_OR_RETURN(local_, LocalStages::Start(launch));
  return absl::OkStatus();
}

void Session::Release() {
  if (fleet_ == nullptr || std::exchange(released_, true)) return;
  interruption_.OnFirst(nullptr);
  fleet_->Release();
}

Session::~Session() { Release(); }

}  // namespace thinwire
