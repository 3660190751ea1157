// Turns flags into options, runs the server, and waits for its end: a signal or the end of the
// lifeline.

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/annotated.h"
#include "base/build_info.h"
#include "base/host_port.h"
#include "base/path.h"
#include "base/resources.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "grpc/support/log.h"
#include "nlohmann/json.hpp"
#include "security/security.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "stage_server/joiner.h"
#include "stage_server/log.h"
#include "stage_server/server.h"

namespace thinwire {
namespace {

constexpr char kTerminated[] = "SIGTERM";
constexpr char kRefused[] = "the run does not take it";
// Longest time that a run may take to leave a server that is to end: the default and the maximum.
constexpr double kLeaveSeconds = 20, kMostLeaveSeconds = 3600;
constexpr int kLeavingCheckMilliseconds = 50;

constexpr char kDescription[] =
    "Trains one pipeline stage for a coordinator.\n\n"
    "`thinwire run` starts the stages of a local run itself. Across machines, start one server on\n"
    "each and name them, first stage first:\n\n"
    "  stage_server --listen 0.0.0.0:4700 --metrics_listen 0.0.0.0:9700 --insecure\n"
    "  thinwire run experiments/quickstart.yaml --stages a:4700,b:4700,c:4700,d:4700\n\n"
    "With --join a server offers itself to a run that takes servers in (docs/replicas.md):\n\n"
    "  thinwire run my.yaml --stages a:4700,b:4700 --listen 0.0.0.0:4600 --insecure\n"
    "  stage_server --listen 0.0.0.0:4700 --insecure --join trainer:4600 --advertise c:4700\n\n"
    "Where several servers share a machine, start them with OMP_WAIT_POLICY=passive, as "
    "`thinwire`\n"
    "does: threads that wait then leave the cores to other stages.";

// Least number of descriptors, and the part that the server keeps for files, logs, links to
// neighbours and scrapes of its metrics.
constexpr uint64_t kLeastDescriptors = 128, kOwnDescriptors = 96;
constexpr unsigned kShutdownSeconds = 5;  // after which the process is ended by force

Log* process_log = nullptr;  // never deleted: gRPC's threads outlive main

// Writes gRPC's messages to our log; gRPC has one logger per process.
void LogOfGrpc(gpr_log_func_args* line) {
  const auto level =
      line->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  process_log->Write(level, "grpc", {}, absl::StrCat("gRPC: ", line->message));
}

// Returns limits that keep connections from using the descriptors that the server itself needs.
ConnectionLimits LimitsFor(uint64_t descriptors) {
  ConnectionLimits limits;
  limits.most = std::min<size_t>(limits.most, descriptors - kOwnDescriptors);
  limits.most_of_host = std::min(limits.most_of_host, limits.most);
  return limits;
}

// Tells the process that started this one where the server listens.
bool ReportReady(int fd, const StageServer& server) {
  const std::string line =
      nlohmann::json({{"listen", server.address()}, {"metrics", server.metrics_address()}}).dump() +
      "\n";
  const bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(fd);
  return written;
}

void LogServing(const StageServer& server) {
  const std::string& metrics = server.metrics_address();
  process_log->Write(
      spdlog::level::info, "serving", {},
      absl::StrCat("stage_server ", BuildCommit(), " serving on ", server.address(),
                   metrics.empty() ? ", no metrics"
                                   : absl::StrCat(", metrics on http://", metrics, "/metrics")),
      {{"listen", server.address()}, {"metrics", metrics}, {"build", BuildId()}});
}

// Returns a descriptor that reads the signals that end the server. Called before any thread exists,
// as it blocks them.
int EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // writes beyond the size limit then fail, naming the file
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

// Waits, and returns what ended the server.
std::string WaitForEnd(int signals, int lifeline, int refusal) {
  // poll skips a negative fd
  pollfd ends[] = {{signals, POLLIN, 0}, {lifeline, POLLIN, 0}, {refusal, POLLIN, 0}};
  for (;;) {
    if (poll(ends, 3, /*timeout=*/-1) < 0 && errno == EINTR) continue;
    if (ends[2].revents != 0) return kRefused;
    signalfd_siginfo signal;
    if (ends[0].revents != 0 && read(signals, &signal, sizeof(signal)) == sizeof(signal)) {
      return signal.ssi_signo == SIGINT ? "SIGINT" : kTerminated;
    }
    char byte;
    if (ends[1].revents != 0 && read(lifeline, &byte, 1) <= 0) return "its coordinator ended";
  }
}

// Waits until no run has the server leased, `seconds` are over, or another signal comes.
void AwaitLeaving(const StageServer& server, int signals, double seconds) {
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(seconds);
  pollfd signal = {signals, POLLIN, 0};
  while (server.IsLeased() && SteadyTime::Now() < deadline) {
    if (poll(&signal, 1, kLeavingCheckMilliseconds) > 0) return;
  }
}

struct Flags {
  ServerOptions options;
  bool no_device_slots = false;
  double leave_seconds = kLeaveSeconds;
  std::string join, advertise;  // addresses of a coordinator and of this server; empty: none
  LogOptions logging;
  int ready_fd = -1, lifeline_fd = -1;
};

void AddServing(Flags* flags, CLI::App* app) {
  ServerOptions& options = flags->options;
  app->add_option("--listen", options.listen,
                  "gRPC address: host:port or unix:/path; port 0 picks one")
      ->capture_default_str();
  app->add_option("--metrics_listen", options.metrics_listen,
                  "Prometheus /metrics, and /healthz: host:port; empty for none")
      ->capture_default_str();
  app->add_option("--cuda_plugin", options.cuda_plugin,
                  "path of libthinwire_cuda.so, opened when a run asks for a GPU (default: beside\n"
                  "this program, in lib/ beside it, or in the build's tree)")
      ->transform(&thinwire::WithHome);
  app->add_option(
      "--join", flags->join,
      "host:port of a `thinwire run --listen`, to which the server offers itself until\n"
      "it ends");
  app->add_option("--advertise", flags->advertise,
                  "host:port at which that run's machines reach this server (default: --listen)");
  app->add_flag("--no_device_slots", flags->no_device_slots,
                "send exact messages to stages of this machine through the host's memory, even\n"
                "where both GPUs reach memory of one");
}

// Adds flags that say what a run may read, and who may call.
void AddPermissions(Flags* flags, CLI::App* app) {
  ServerOptions& options = flags->options;
  app->add_option("--codec_plugins", options.allowed.codec_plugins,
                  "folders, DIR[:DIR...], in which the codec plug-ins that a run names are looked\n"
                  "for, by file name; none: no plug-in is opened")
      ->delimiter(':');
  app->add_option(
         "--data", options.allowed.data,
         "folder below which the data, and with init_at: stages the model, of a run must lie")
      ->capture_default_str();
  app->add_option("--state", options.allowed.state,
                  "folder below which feedback.dir of a run must lie")
      ->capture_default_str();
  app->add_option(
         "--swap_dir", options.swap_dir,
         "folder of the file in which tensors of runs with pipeline.swap: disk wait, best\n"
         "on a fast local disk; nothing stays there (default: that of --state)")
      ->transform(&thinwire::WithHome);
  app->add_option("--swap_bytes", options.swap_bytes,
                  "most bytes of that file (default: what the disk has free, less a margin)");
  app->add_option(
      "--tls_cert", options.security.tls_cert,
      "PEM file of this server's certificate, for stage.thinwire; deploy/certs.sh makes\n"
      "it, its key and its authority's; all three are read again when they change");
  app->add_option("--tls_key", options.security.tls_key, "PEM file of its key");
  app->add_option("--tls_ca", options.security.tls_ca,
                  "PEM file of the authority that has signed all certificates of the run");
  app->add_option("--token_file", options.security.token_file,
                  "file with a secret, at least 16 bytes, that every caller must show");
  app->add_flag("--insecure", options.insecure,
                "listen where others may call, with neither certificates nor a secret");
}

void AddProcess(Flags* flags, CLI::App* app) {
  app->add_option(
         "--leave_seconds", flags->leave_seconds,
         "on SIGTERM: how long a run may take to end its step, write a checkpoint and leave")
      ->capture_default_str()
      ->check(CLI::Range(0.0, kMostLeaveSeconds));
  app->add_option("--log_level", flags->logging.level,
                  "least level of lines on stderr: debug, info, warning, error or off")
      ->capture_default_str();
  app->add_option("--log_format", flags->logging.format, "text, or json: one object a line")
      ->capture_default_str();
  app->add_option("--ready_fd", flags->ready_fd,
                  "descriptor that gets one line of JSON with both addresses once serving");
  app->add_option("--lifeline_fd", flags->lifeline_fd,
                  "descriptor whose end of file ends the server; leases then last until released");
}

int Failed(const absl::Status& status) {
  process_log->Write(spdlog::level::critical, "failed", {}, std::string(status.message()));
  return 1;
}

// Offers the server to a run, if the flags name one. `refusal` is written to where the run does not
// take it.
absl::StatusOr<std::unique_ptr<Joiner>> StartToJoin(const Flags& flags, StageServer* server,
                                                    int refusal) {
  if (flags.join.empty()) {
    if (flags.advertise.empty()) return nullptr;
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise ", flags.advertise, " without --join, want both or neither"));
  }
  RETURN_IF_ERROR(Annotated(ParseHostPort(flags.join).status(), "--join"));
  JoinOptions options;
  options.coordinator = flags.join;
  ASSIGN_OR_RETURN(options.address, AdvertisedAddress(flags.advertise, server->address()));
  ASSIGN_OR_RETURN(options.security, Security::Load(flags.options.security));
  options.offer = [server] { return server->Offer(); };
  options.on_ended = [server] { server->OfferHasEnded(); };
  options.on_refused = [refusal] { eventfd_write(refusal, 1); };
  return std::make_unique<Joiner>(std::move(options), process_log);
}

// Serves until a signal or the lifeline's end, and returns the exit code.
int Serve(Flags flags) {
  ServerOptions& options = flags.options;
  options.device_slots = !flags.no_device_slots;
  options.leases_last = flags.lifeline_fd >= 0;
  if (flags.lifeline_fd < 0) {
    // Who asks again does not cut short what the first one has begun.
    options.on_drain = [is_asked = std::make_shared<std::atomic<bool>>(false)] {
      if (!is_asked->exchange(true)) kill(getpid(), SIGTERM);
    };
  }
  gpr_set_log_function(LogOfGrpc);
  const int signals = EndSignals();
  const absl::StatusOr<uint64_t> descriptors = RaiseDescriptorLimit(kLeastDescriptors);
  if (!descriptors.ok()) return Failed(descriptors.status());
  options.connections = LimitsFor(*descriptors);
  const absl::StatusOr<std::unique_ptr<StageServer>> server = StartStageServer(options);
  if (!server.ok()) return Failed(server.status());
  LogServing(**server);
  if (flags.ready_fd >= 0 && !ReportReady(flags.ready_fd, **server)) return 1;
  const int refusal = eventfd(0, EFD_CLOEXEC);
  absl::StatusOr<std::unique_ptr<Joiner>> joiner = StartToJoin(flags, server->get(), refusal);
  if (!joiner.ok()) return Failed(joiner.status());
  const std::string cause = WaitForEnd(signals, flags.lifeline_fd, refusal);
  joiner->reset();
  process_log->Write(spdlog::level::info, "ending", {}, "the server ends: " + cause);
  const bool leaves = cause == kTerminated || cause == kRefused;
  if (leaves && flags.lifeline_fd < 0) {
    (*server)->AskToLeave();
    AwaitLeaving(**server, signals, flags.leave_seconds);
  }
  alarm(kShutdownSeconds);
  (*server)->Shutdown();
  return cause == kRefused ? 1 : 0;
}

int Main(int argc, char** argv) {
  KeepOpenSslToTheEnd();
  Flags flags;
  CLI::App app(kDescription, "stage_server");
  app.set_version_flag("--version", "stage_server " + BuildId());
  AddServing(&flags, &app);
  AddPermissions(&flags, &app);
  AddProcess(&flags, &app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  absl::StatusOr<std::unique_ptr<Log>> log =
      Log::New(flags.logging, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (!log.ok()) {
    std::fprintf(stderr, "stage_server: %s\n", std::string(log.status().message()).c_str());
    return 2;
  }
  flags.options.log = process_log = log->release();
  return Serve(std::move(flags));
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }
