// `thinwire serve`: a queue of experiments that others submit, and the runs that it is worked off
// in.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/annotated.h"
#include "base/host_port.h"
#include "base/status.h"
#include "base/text.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/files/file_lock.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/serve/loop.h"
#include "coordinator/serve/queue.h"
#include "coordinator/serve/queue_metrics.h"
#include "coordinator/serve/service.h"
#include "coordinator/session/exit_code.h"
#include "monitoring/metrics_server.h"

namespace thinwire {
namespace {

struct ServeFlags {
  std::string listen = kQueueAddress;          // host:port
  std::string metrics_listen = "127.0.0.1:0";  // host:port
  bool insecure = false;
  QueueLimits limits = {{}, "runs/queue"};
  ServeOptions options;  // its certificates and its token are this server's, too
};

constexpr char kServeExamples[] =
    R"(Runs what `thinwire submit` sends, first come, first served, each run in a folder of its own,
OUT/runs/NAME-NUMBER. The queue stands on the disk: after any end, however it came, the same
command goes on with it and with the runs that were under way (docs/serve.md).

Examples:
  thinwire serve --out runs/queue
  thinwire serve --stages a:4700,b:4700 --stages c:4700,d:4700
  thinwire serve --listen 0.0.0.0:4600 --metrics_listen 0.0.0.0:9700 \
      --tls_cert coordinator.pem --tls_key coordinator.key --tls_ca ca.pem
Exit codes: 0 ended by a signal, 1 failed, 2 wrong usage.
)";

absl::Status CheckUsage(const ServeFlags& flags) {
  RETURN_IF_ERROR(CheckJobs(flags.options.jobs, flags.limits.groups));
  RETURN_IF_ERROR(StagesOfGroups(flags.limits.groups).status());
  RETURN_IF_ERROR(Annotated(ParseHostPort(flags.listen).status(), "--listen"));
  return Annotated(ParseHostPort(flags.metrics_listen).status(), "--metrics_listen");
}

int ServeCommand(const ServeFlags& flags, Interruption* interruption) {
  const absl::Status usage = CheckUsage(flags);
  if (!usage.ok()) return Complain(usage, kExitUsage);
  const absl::StatusOr<Security> security = Security::Load(flags.options.session.security);
  if (!security.ok()) return Complain(security.status(), kExitUsage);
  const absl::Status listen =
      flags.insecure ? absl::OkStatus() : security->CheckListen(flags.listen);
  if (!listen.ok()) return Complain(listen, kExitUsage);
  std::error_code ignored;  // the lock's file names the folder
  std::filesystem::create_directories(flags.limits.dir, ignored);
  const auto lock = FileLock::Take(flags.limits.dir + "/.serve.lock");
  if (!lock.ok()) return Complain(lock.status(), kExitUsage);
  const auto queue = RunQueue::Open(flags.limits.dir);
  if (!queue.ok()) return Complain(queue.status(), kExitFailed);
  QueueMetrics metrics;
  metrics.Show((*queue)->Count());
  const auto metrics_server = MetricsServer::Start(flags.metrics_listen, metrics.sources());
  if (!metrics_server.ok()) return Complain(metrics_server.status(), kExitFailed);
  QueueService service(queue->get(), flags.limits, *security);
  const auto server = QueueServer::Start(flags.listen, &service, *security);
  if (!server.ok()) return Complain(server.status(), kExitFailed);
  std::printf("serving on %s; runs that wait in %s: %zu; metrics at http://%s/metrics\n",
              (*server)->address().c_str(), PrintableLine(flags.limits.dir).c_str(),
              (*queue)->Count().at("waits"), (*metrics_server)->address().c_str());
  std::fflush(stdout);
  WorkOff(flags.options, flags.limits, queue->get(), &metrics, interruption);
  (*queue)->Close();
  return kExitDone;
}

}  // namespace

Command AddServe(CLI::App* app) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* serve =
      app->add_subcommand("serve", "train what others submit, one run after the other");
  serve->footer(kServeExamples);
  serve->add_option("--listen", flags->listen, "host:port of the queue; port 0: any")
      ->capture_default_str();
  serve
      ->add_option("--metrics_listen", flags->metrics_listen,
                   "host:port of /metrics and /healthz; port 0: any")
      ->capture_default_str();
  serve
      ->add_option("--metrics_linger", flags->options.metrics_linger_seconds,
                   "seconds for which each run, and its series, stay after its end")
      ->capture_default_str()
      ->check(kSeconds);
  serve->add_option("--out", flags->limits.dir, "folder of the queue and of its runs")
      ->capture_default_str()
      ->transform(kPath);
  AddJobs(serve, &flags->options.jobs);
  AddStageGroups(serve, &flags->limits.groups);
  serve
      ->add_option("--stages_wait", flags->options.session.wait_seconds,
                   "seconds for which a run waits for its servers of --stages to be there and free")
      ->capture_default_str()
      ->check(kSeconds);
  serve->add_flag("--insecure", flags->insecure,
                  "listen where others may call, with neither certificates nor a secret");
  AddSecurity(serve, &flags->options.session.security);
  AddLaunch(serve, &flags->options.session);
  return {serve,
          [flags](Interruption* interruption) { return ServeCommand(*flags, interruption); }};
}

}  // namespace thinwire
