#include "coordinator/commands/serve_flags.h"

#include "coordinator/commands/flags.h"

namespace thinwire {
namespace {

constexpr char kServeExamples[] =
    "Runs what `thinwire submit` sends, first come, first served, each run in a folder of its "
    "own,\n"
    "OUT/runs/NAME-NUMBER. The queue stands on the disk: after any end, however it came, the same\n"
    "command goes on with it and with the runs that were under way (docs/serve.md).\n\n"
    "Examples:\n"
    "  thinwire serve --out runs/queue\n"
    "  thinwire serve --stages a:4700,b:4700 --stages c:4700,d:4700\n"
    "  thinwire serve --listen 0.0.0.0:4600 --metrics_listen 0.0.0.0:9700 \\\n"
    "      --tls_cert coordinator.pem --tls_key coordinator.key --tls_ca ca.pem\n"
    "Exit codes: 0 ended by a signal, 1 failed, 2 wrong usage.\n";

constexpr char kSubmitExamples[] =
    "Prints the ids of the runs. All files are checked by the server before it takes the first.\n"
    "Paths in an experiment are the server's.\n\n"
    "Examples:\n"
    "  thinwire submit experiments/quickstart.yaml\n"
    "  thinwire submit --server trainer:4600 a.yaml b.yaml --set epochs=20 \\\n"
    "      --tls_cert coordinator.pem --tls_key coordinator.key --tls_ca ca.pem\n"
    "Exit codes: 0 taken, 1 the server cannot be reached or has no room, 2 wrong usage or\n"
    "experiment.\n";

constexpr char kWatchExamples[] =
    "Prints what the run has printed and prints, to its end. Ctrl-C ends the watch, not the "
    "run.\n\n"
    "Examples:\n"
    "  thinwire watch quickstart-1\n"
    "Exit codes: the run's, as of thinwire run; 1 the server was lost, 2 unknown run.\n";

constexpr char kListExamples[] =
    "Examples:\n"
    "  thinwire list\n"
    "  thinwire list --format json\n";

constexpr char kCancelExamples[] =
    "Takes a run out of the queue, or interrupts it as Ctrl-C does, with a checkpoint and a "
    "summary\n"
    "of what was reached, and returns when it has ended.\n\n"
    "Examples:\n"
    "  thinwire cancel quickstart-2\n"
    "Exit codes: 0 it has ended, 1 the server cannot be reached, 2 unknown run.\n";

void AddServer(CLI::App* command, QueueFlags* flags) {
  command->add_option("--server", flags->server, "where `thinwire serve` listens, host:port")
      ->capture_default_str();
  AddSecurity(command, &flags->security);
}

}  // namespace

CLI::App* AddServe(CLI::App* app, ServeFlags* flags) {
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
      ->add_option("--metrics_linger", flags->metrics_linger_seconds,
                   "seconds for which each run, and its series, stay after its end")
      ->capture_default_str()
      ->check(kSeconds);
  serve->add_option("--out", flags->out, "folder of the queue and of its runs")
      ->capture_default_str()
      ->transform(kPath);
  serve->add_option("--jobs", flags->jobs, "runs at once on this machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  serve
      ->add_option(
          "--stages", flags->stages,
          "stage servers that are already running, for one run at a time; may stand often: "
          "so many runs at once")
      ->type_name("HOST:PORT,HOST:PORT,...")
      ->allow_extra_args(false);
  serve
      ->add_option("--stages_wait", flags->session.wait_seconds,
                   "seconds for which a run waits for its servers of --stages to be there and free")
      ->capture_default_str()
      ->check(kSeconds);
  serve->add_flag("--insecure", flags->insecure,
                  "listen where others may call, with neither certificates nor a secret");
  AddSecurity(serve, &flags->session.security);
  AddLaunch(serve, &flags->session);
  return serve;
}

QueueCommands AddQueueCommands(CLI::App* app, QueueFlags* flags) {
  QueueCommands commands = {};
  commands.submit = app->add_subcommand("submit", "put experiments into the queue of a server");
  commands.submit->footer(kSubmitExamples);
  commands.submit->add_option("EXPERIMENT", flags->experiments, "experiment files (YAML)")
      ->required()
      ->transform(kPath);
  AddOverrides(commands.submit, &flags->overrides);
  commands.watch = app->add_subcommand("watch", "show what a run of a server prints");
  commands.watch->footer(kWatchExamples);
  commands.list = app->add_subcommand("list", "show the runs of a server");
  commands.list->footer(kListExamples);
  commands.list->add_option("--format", flags->format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  commands.cancel = app->add_subcommand("cancel", "end a run of a server");
  commands.cancel->footer(kCancelExamples);
  for (CLI::App* command : {commands.watch, commands.cancel}) {
    command->add_option("RUN", flags->run, "its id, as submit and list print it")->required();
  }
  for (CLI::App* command : {commands.submit, commands.watch, commands.list, commands.cancel}) {
    AddServer(command, flags);
  }
  return commands;
}

}  // namespace thinwire
