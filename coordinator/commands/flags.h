// Flags that several commands share.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"

namespace thinwire {

// Address at which servers of experiments listen, and are looked for, that are named nowhere else.
inline constexpr char kQueueAddress[] = "127.0.0.1:4600";

// A finite number of at least 0; CLI::NonNegativeNumber takes nan.
extern const CLI::Validator kSeconds;
// Accepts non-empty paths; a leading "~" becomes the home folder. For transform().
extern const CLI::Validator kPath;

// Adds EXPERIMENT and --set.
void AddExperiment(CLI::App* command, std::string* experiment, std::vector<std::string>* overrides);
// Adds --set.
void AddOverrides(CLI::App* command, std::vector<std::string>* overrides);
// Adds --format, text or json.
void AddFormat(CLI::App* command, std::string* format);
// Adds --allow_other_build.
void AddOtherBuild(CLI::App* command, SessionOptions* session);
// Adds --stage_server, --cuda_plugin and --allow_other_build.
void AddLaunch(CLI::App* command, SessionOptions* session);
// Adds --stages, --stages_wait and the flags of AddSecurity.
void AddStages(CLI::App* command, SessionOptions* session);
// Adds --jobs.
void AddJobs(CLI::App* command, int* jobs);
// Adds --stages for commands with several runs: "HOST:PORT,HOST:PORT" for each run at a time
void AddStageGroups(CLI::App* command, std::vector<std::string>* groups);
// Refuses --jobs beside --stages.
absl::Status CheckJobs(int jobs, const std::vector<std::string>& groups);
// Adds --stages_wait.
void AddStagesWait(CLI::App* command, SessionOptions* session);
// Adds the TLS files and the token, for stages that are already running.
void AddSecurity(CLI::App* command, SecurityOptions* security);

// The network that a plan assumes, as PlanAssumptions has it, but for the rate of its links.
struct NetworkFlags {
  double rtt_ms = 0;
  std::string nic = "shared";
  int cores = 0;
};
// Adds --rtt_ms, --nic and --cores.
void AddNetwork(CLI::App* command, NetworkFlags* network);
// Returns the assumptions; without `link_mbit` at several usual rates. InvalidArgument names the
// flag, or the value.
absl::StatusOr<PlanAssumptions> AssumptionsFrom(std::optional<double> link_mbit,
                                                const NetworkFlags& network);
// Adds --from, --gflops and --codec_gbps.
void AddSpeeds(CLI::App* command, SpeedFlags* speeds);

// Returns how a file is to be written: as `flag` says, or by the ending of `path` where that is one
// of `endings`, or as `otherwise`.
std::string FormatFor(const std::string& flag, const std::string& path,
                      std::initializer_list<const char*> endings, const char* otherwise);

}  // namespace thinwire
