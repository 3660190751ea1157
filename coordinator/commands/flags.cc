#include "coordinator/commands/flags.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status.h"

namespace thinwire {

// CLI::NonNegativeNumber accepts nan.
extern const CLI::Validator kSeconds(
    [](std::string& text) -> std::string {
      double seconds = 0;
      const bool is_number = CLI::detail::lexical_cast(text, seconds) && std::isfinite(seconds);
      return is_number && seconds >= 0 ? "" : text + ", want a finite number of at least 0";
    },
    "SECONDS");

extern const CLI::Validator kPath(
    [](std::string& text) -> std::string {
      text = WithHome(text);
      return text.empty() ? "\"\", want a path" : "";
    },
    "PATH");

void AddExperiment(CLI::App* command, std::string* experiment,
                   std::vector<std::string>* overrides) {
  command->add_option("EXPERIMENT", *experiment, "experiment file (YAML)")
      ->required()
      ->transform(kPath);
  AddOverrides(command, overrides);
}

void AddOverrides(CLI::App* command, std::vector<std::string>* overrides) {
  command
      ->add_option("--set", *overrides,
                   "override a field: path=value, as compression.gradients.bits=4; may stand often")
      ->allow_extra_args(false);
}

void AddFormat(CLI::App* command, std::string* format) {
  command->add_option("--format", *format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
}

void AddOtherBuild(CLI::App* command, SessionOptions* session) {
  command->add_flag("--allow_other_build", session->allow_other_build,
                    "take stage servers of another build than this program's, too");
}

void AddLaunch(CLI::App* command, SessionOptions* session) {
  command
      ->add_option("--stage_server", session->stage_server,
                   "stage server binary (default: the one beside thinwire)")
      ->transform(kPath);
  command->add_option("--cuda_plugin", session->cuda_plugin,
                      "libthinwire_cuda.so of stages started here (default: where stage_server "
                      "looks for it)");
  AddOtherBuild(command, session);
}

void AddStages(CLI::App* command, SessionOptions* session) {
  command
      ->add_option(
          "--stages", session->stages,
          "stage servers that are already running, in order, one per stage; without it "
          "they are started on this machine. An address may hold a range, node{1..4}:4700; "
          "the last may end in an open one, node{1..}:4700, for as many as the experiment "
          "has. Where the experiment leaves pipeline.stages out, there are as many as named")
      ->type_name("HOST:PORT,HOST:PORT,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddStagesWait(command, session);
  AddSecurity(command, &session->security);
}

void AddJobs(CLI::App* command, int* jobs) {
  command->add_option("--jobs", *jobs, "runs at once on this machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
}

void AddStageGroups(CLI::App* command, std::vector<std::string>* groups) {
  command
      ->add_option(
          "--stages", *groups,
          "stage servers that are already running, for one run at a time; may stand often: "
          "so many runs at once")
      ->type_name("HOST:PORT,HOST:PORT,...")
      ->allow_extra_args(false);
}

absl::Status CheckJobs(int jobs, const std::vector<std::string>& groups) {
  if (jobs == 1 || groups.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--jobs with --stages: a run at a time has each --stages, want it alone");
}

void AddStagesWait(CLI::App* command, SessionOptions* session) {
  command
      ->add_option("--stages_wait", session->wait_seconds,
                   "seconds to wait for the servers of --stages to be there and free")
      ->capture_default_str()
      ->check(kSeconds);
}

void AddSecurity(CLI::App* command, SecurityOptions* security) {
  command
      ->add_option("--tls_cert", security->tls_cert,
                   "PEM file of this program's certificate, for coordinator.thinwire; "
                   "deploy/certs.sh makes it, its key and its authority's")
      ->transform(kPath);
  command->add_option("--tls_key", security->tls_key, "PEM file of its key")->transform(kPath);
  command
      ->add_option("--tls_ca", security->tls_ca,
                   "PEM file of the authority that has signed all certificates of the run")
      ->transform(kPath);
  command
      ->add_option("--token_file", security->token_file,
                   "file with the secret that the servers of --stages want to see")
      ->transform(kPath);
}

void AddNetwork(CLI::App* command, NetworkFlags* network) {
  command->add_option("--rtt_ms", network->rtt_ms, "round trip between two hosts, milliseconds")
      ->capture_default_str();
  command
      ->add_option("--nic", network->nic,
                   "shared: a stage's neighbours share its interface; private: each boundary has a "
                   "link of that rate")
      ->capture_default_str();
  command->add_option("--cores", network->cores, "all stages share so many cores of one host")
      ->check(CLI::Range(1, 1 << 20));
}

absl::StatusOr<PlanAssumptions> AssumptionsFrom(std::optional<double> link_mbit,
                                                const NetworkFlags& network) {
  PlanAssumptions assumptions;
  if (link_mbit) assumptions.bits_per_second = {*link_mbit * 1e6};
  assumptions.rtt_ms = network.rtt_ms;
  assumptions.cores = network.cores;
  const absl::Status nic = FromName(network.nic, &assumptions.nic);
  if (!nic.ok()) return absl::InvalidArgumentError(absl::StrCat("--", nic.message()));
  RETURN_IF_ERROR(CheckAssumptions(assumptions));
  return assumptions;
}

void AddSpeeds(CLI::App* command, SpeedFlags* speeds) {
  command
      ->add_option("--from", speeds->from,
                   "folder of a run of that model: what it measured of compute and codecs counts")
      ->type_name("DIR")
      ->transform(kPath);
  command->add_option("--gflops", speeds->gflops,
                      "compute speed of a stage, 10^9 operations per second (default: measured)");
  command->add_option("--codec_gbps", speeds->codec_gbps,
                      "speed of encoding and of decoding, raw gigabytes per second (default: "
                      "measured)");
}

std::string FormatFor(const std::string& flag, const std::string& path,
                      std::initializer_list<const char*> endings, const char* otherwise) {
  if (!flag.empty()) return flag;
  for (const char* ending : endings) {
    if (absl::EndsWith(path, absl::StrCat(".", ending))) return ending;
  }
  return otherwise;
}

}  // namespace thinwire
