// Command line to options.

#include <signal.h>

#include <string>

#include "CLI/CLI.hpp"
#include "coordinator/exit_code.h"
#include "coordinator/interruption.h"
#include "coordinator/plan_command.h"
#include "coordinator/run_command.h"

namespace {

constexpr char kDescription[] =
    "Pipeline-parallel training over slow networks, with compressed activations and gradients.";

constexpr char kRunExamples[] =
    "Examples:\n"
    "  thinwire run experiments/quickstart.yaml\n"
    "  thinwire run experiments/quickstart.yaml --set compression.activations.codec=topk \\\n"
    "      --set compression.activations.ratio=0.1 --out runs/topk10\n"
    "  thinwire run experiments/quickstart.yaml --stages a:4700,b:4700,c:4700,d:4700\n"
    "Exit codes: 0 done, 1 run failed, 2 wrong usage or experiment file, 130 interrupted.\n";

constexpr char kPlanExamples[] =
    "Examples:\n"
    "  thinwire plan experiments/quickstart.yaml\n"
    "  thinwire plan experiments/quickstart.yaml --set pipeline.microbatches=8 --latency_ms 20\n";

void AddExperiment(CLI::App* command, std::string* experiment,
                   std::vector<std::string>* overrides) {
  command->add_option("EXPERIMENT", *experiment, "experiment file (YAML)")->required();
  command
      ->add_option("--set", *overrides,
                   "override a field: path=value, as compression.gradients.bits=4; may stand often")
      ->allow_extra_args(false);
}

CLI::App* AddRun(CLI::App* app, thinwire::RunFlags* flags) {
  CLI::App* run = app->add_subcommand("run", "train an experiment");
  run->footer(kRunExamples);
  AddExperiment(run, &flags->experiment, &flags->overrides);
  run->add_option("--out", flags->out, "folder of the results (default: runs/NAME)");
  run->add_flag("--overwrite", flags->overwrite, "replace a run that stands in that folder");
  run->add_option("--stages", flags->stages,
                  "host:port of stage servers that are already running, in order, one per stage; "
                  "without it they are started on this machine")
      ->delimiter(',');
  run->add_option("--metrics_listen", flags->metrics_listen,
                  "host:port of /metrics; port 0: any. targets.json says which")
      ->capture_default_str();
  run->add_option("--metrics_linger", flags->metrics_linger_seconds,
                  "seconds to keep /metrics, and the stages, up after the run")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  run->add_flag("--quiet", flags->quiet, "print errors only");
  run->add_option("--stage_server", flags->stage_server,
                  "stage server binary (default: the one beside thinwire)");
  return run;
}

CLI::App* AddPlan(CLI::App* app, thinwire::PlanFlags* flags) {
  CLI::App* plan = app->add_subcommand(
      "plan", "show cuts, sizes, bytes per boundary and estimated step times; trains nothing");
  plan->footer(kPlanExamples);
  AddExperiment(plan, &flags->experiment, &flags->overrides);
  plan->add_option("--gflops", flags->assumptions.gflops,
                   "assumed compute speed of a stage, 10^9 operations per second")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  plan->add_option("--codec_gbps", flags->assumptions.codec_gigabytes_per_second,
                   "assumed speed of encoding and of decoding, raw gigabytes per second")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  plan->add_option("--latency_ms", flags->assumptions.latency_ms,
                   "assumed latency of every link, milliseconds")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  thinwire::Interruption interruption;
  signal(SIGPIPE, SIG_IGN);  // a reader of our output may leave; the run goes on
  thinwire::RunFlags run_flags;
  thinwire::PlanFlags plan_flags;
  CLI::App app(kDescription, "thinwire");
  app.require_subcommand(1);
  const CLI::App* run = AddRun(&app, &run_flags);
  AddPlan(&app, &plan_flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? thinwire::kExitDone : thinwire::kExitUsage;
  }
  if (run->parsed()) return thinwire::RunCommand(run_flags, &interruption);
  return thinwire::PlanCommand(plan_flags);
}
