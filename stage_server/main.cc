// Flags to options, and a wait for the end: a signal, or the end of the lifeline.

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "stage_server/server.h"

namespace thinwire {
namespace {

constexpr char kDescription[] =
    "Trains one pipeline stage for a coordinator.\n\n"
    "`thinwire run` starts the stages of a local run itself. Across machines, start one server on\n"
    "each and name them, first stage first:\n\n"
    "  stage_server --listen 0.0.0.0:4700 --metrics_listen 0.0.0.0:9700\n"
    "  thinwire run experiments/quickstart.yaml --stages a:4700,b:4700,c:4700,d:4700\n\n"
    "Where several servers share a machine, start them with OMP_WAIT_POLICY=passive, as "
    "`thinwire`\n"
    "does: threads that wait then leave the cores to other stages.";

constexpr unsigned kShutdownSeconds = 5;  // then the process ends the hard way

// Tells whoever started us where we listen.
bool ReportReady(int fd, const StageServer& server) {
  const std::string line =
      nlohmann::json({{"listen", server.address()}, {"metrics", server.metrics_address()}}).dump() +
      "\n";
  const bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(fd);
  return written;
}

// Signals that end the server arrive here; block them before any thread exists.
int EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on files is an error that names the file
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

void WaitForEnd(int signals, int lifeline) {
  pollfd ends[] = {{signals, POLLIN, 0}, {lifeline, POLLIN, 0}};  // poll skips a negative fd
  for (;;) {
    if (poll(ends, 2, /*timeout=*/-1) < 0 && errno == EINTR) continue;
    if (ends[0].revents != 0) return;
    char byte;
    if (ends[1].revents != 0 && read(lifeline, &byte, 1) <= 0) return;
  }
}

int Main(int argc, char** argv) {
  ServerOptions options;
  int ready_fd = -1, lifeline_fd = -1;
  CLI::App app(kDescription, "stage_server");
  app.add_option("--listen", options.listen,
                 "gRPC address: host:port or unix:/path; port 0 picks one")
      ->capture_default_str();
  app.add_option("--metrics_listen", options.metrics_listen,
                 "Prometheus /metrics: host:port; empty for none")
      ->capture_default_str();
  app.add_option("--cuda_plugin", options.cuda_plugin,
                 "path of libthinwire_cuda.so, opened when a run asks for a GPU (default: beside\n"
                 "this program, in lib/ beside it, or in the build's tree)");
  app.add_option("--ready_fd", ready_fd,
                 "descriptor that gets one line of JSON with both addresses once serving");
  app.add_option("--lifeline_fd", lifeline_fd, "descriptor whose end of file ends the server");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const int signals = EndSignals();
  absl::StatusOr<std::unique_ptr<StageServer>> server = StartStageServer(options);
  if (!server.ok()) {
    std::fprintf(stderr, "stage_server: %s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  std::fprintf(stderr, "stage_server: serving on %s, metrics on http://%s/metrics\n",
               (*server)->address().c_str(), (*server)->metrics_address().c_str());
  if (ready_fd >= 0 && !ReportReady(ready_fd, **server)) return 1;
  WaitForEnd(signals, lifeline_fd);
  alarm(kShutdownSeconds);
  (*server)->Shutdown();
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }
