// Parses the command line.

#include <signal.h>

#include <iostream>
#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "base/build_info.h"
#include "base/resources.h"
#include "coordinator/commands/checkpoint_command.h"
#include "coordinator/commands/codecs_command.h"
#include "coordinator/commands/data_command.h"
#include "coordinator/commands/doctor_command.h"
#include "coordinator/commands/flags.h"
#include "coordinator/commands/generate_command.h"
#include "coordinator/commands/plan_command.h"
#include "coordinator/commands/probe_command.h"
#include "coordinator/commands/report_flags.h"
#include "coordinator/commands/run_command.h"
#include "coordinator/commands/serve_flags.h"
#include "coordinator/commands/sweep_flags.h"
#include "coordinator/commands/tune_flags.h"
#include "coordinator/commands/unknown_argument.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/interruption.h"
#include "security/security.h"

namespace {

using thinwire::AddLaunch;
using thinwire::AddOtherBuild;
using thinwire::AddOverrides;
using thinwire::AddSecurity;
using thinwire::kPath;
using thinwire::kSeconds;

constexpr uint64_t kLeastDescriptors = 64;

constexpr char kDescription[] =
    "Pipeline-parallel training over slow networks, with compressed activations and gradients.";

constexpr char kRunExamples[] =
    "Examples:\n"
    "  thinwire run experiments/quickstart.yaml\n"
    "  thinwire run experiments/quickstart.yaml --set compression.activations.codec=topk \\\n"
    "      --set compression.activations.ratio=0.1 --out runs/topk10\n"
    "  thinwire run experiments/quickstart.yaml --stages a:4700,b:4700,c:4700,d:4700\n"
    "  thinwire run experiments/quickstart.yaml --stages 'node{1..4}:4700' --stages_wait 300\n"
    "  thinwire run --resume runs/quickstart --set epochs=20\n"
    "  thinwire run experiments/quickstart.yaml --trace steps=10..12\n"
    "Exit codes: 0 done, 1 run failed, 2 wrong usage or experiment file, 130 interrupted.\n";

constexpr char kPlanExamples[] =
    "Without --link_mbit: step times of the experiment at some usual link rates. With it also a "
    "table\n"
    "of codecs, microbatches and schedules on that link, fastest first. Compute and codecs are "
    "measured\n"
    "here in some seconds, or are those of a run (--from); docs/plan.md has the rest.\n\n"
    "Examples:\n"
    "  thinwire plan experiments/quickstart.yaml\n"
    "  thinwire plan my.yaml --link_mbit 50 --rtt_ms 100 --codec 'topk(ratio=0.1)' \\\n"
    "      --codec 'uniform(bits=4) | uniform(bits=8)' --microbatches 1,2,4,8\n"
    "  thinwire plan my.yaml --link_mbit 100 --from runs/short --format json\n"
    "A pair 'A | G' has A on activations and G on gradients.\n"
    "Exit codes: 0 done, 1 a measurement failed, 2 wrong usage or experiment, 130 interrupted.\n";

constexpr char kProbeExamples[] =
    "Takes a run's final weights and the first batches of the epoch that would follow, or an\n"
    "experiment's initial weights and its first batches. Computes the gradient of each batch "
    "without\n"
    "codecs, then with each codec on activations alone (forward), on gradients alone (backward) "
    "and\n"
    "on both, and tells how far the parameter gradient is from the one without: cosine, relative\n"
    "error, ratio of norms; for the whole model and for the segments between the cuts. Beside it "
    "what\n"
    "the codec cost (wire bits per element) and lost at the cuts. The experiment's own compression "
    "is\n"
    "left aside. Nothing is trained and the run's folder is not written to.\n\n"
    "Examples:\n"
    "  thinwire probe runs/quickstart\n"
    "  thinwire probe experiments/quickstart.yaml --batches 8 --out probe.md --out probe.json\n"
    "  thinwire probe runs/quickstart --codec 'topk(ratio=0.1, scope=sample)' \\\n"
    "      --codec 'uniform(bits=4, zero=on_grid)' --format csv\n"
    "  thinwire probe runs/quickstart \\\n"
    "      --codec 'topk(ratio=0.1, scope=sample) | topk(indices=shared)'\n"
    "A pair 'A | G' has A on activations and G on gradients.\n\n"
    "With --budget each direction of each cut is compressed alone at several rates, and the budget "
    "is\n"
    "shared so that the gradient's error is least: as compression.boundaries of an experiment "
    "file.\n"
    "  thinwire probe runs/cifar10 --budget 1.25 --out shares.md --out shares.yaml\n"
    "Exit codes: 0 done, 1 probe failed, 2 wrong usage, experiment or codec, 130 interrupted.\n";

constexpr char kCodecsExamples[] =
    "Examples:\n"
    "  thinwire codecs\n"
    "  thinwire codecs --conformance 'topk(ratio=0.1, scope=sample)'\n"
    "  thinwire codecs --conformance ./libsign.so --parameters '{\"center\": false}'\n"
    "  thinwire codecs --measure runs/quickstart/captures/*.safetensors\n"
    "  thinwire codecs --measure --codec fp8 --codec ./libsign.so\n"
    "Exit codes: 0 done or all checks passed, 1 failed, 2 wrong usage, 130 interrupted.\n";

void AddExperiment(CLI::App* command, std::string* experiment,
                   std::vector<std::string>* overrides) {
  command->add_option("EXPERIMENT", *experiment, "experiment file (YAML)")
      ->required()
      ->transform(kPath);
  AddOverrides(command, overrides);
}

void AddStages(CLI::App* command, thinwire::SessionOptions* session) {
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
  command
      ->add_option("--stages_wait", session->wait_seconds,
                   "seconds to wait for the servers of --stages to be there and free")
      ->capture_default_str()
      ->check(kSeconds);
  AddSecurity(command, &session->security);
}

CLI::App* AddRun(CLI::App* app, thinwire::RunFlags* flags) {
  CLI::App* run = app->add_subcommand("run", "train an experiment");
  run->footer(kRunExamples);
  run->add_option("EXPERIMENT", flags->experiment,
                  "experiment file (YAML); with --resume only where no run stands yet, or to go on "
                  "as another one")
      ->transform(kPath);
  AddOverrides(run, &flags->overrides);
  run->add_option("--resume", flags->resume,
                  "go on with the run in this folder from its last checkpoint, or begin EXPERIMENT "
                  "there if there is none; without DIR in the folder of the experiment's name")
      ->type_name("DIR")
      ->expected(0, 1)
      ->default_str(thinwire::kFolderOfName)
      ->transform(kPath);
  run->add_option("--out", flags->out, "folder of the results (default: runs/NAME)")
      ->transform(kPath);
  run->add_flag("--overwrite", flags->overwrite, "replace a run that stands in that folder");
  AddStages(run, &flags->session);
  run->add_option(
         "--metrics_listen", flags->metrics_listen,
         "host:port of /metrics and /healthz; port 0: any. The first line and targets.json "
         "say which")
      ->capture_default_str();
  run->add_option("--metrics_linger", flags->metrics_linger_seconds,
                  "seconds to keep /metrics, and the stages, up after the run")
      ->capture_default_str()
      ->check(kSeconds);
  run->add_option("--trace", flags->trace,
                  "write what each stage did in these training steps of the run to trace.json, for "
                  "thinwire trace and Perfetto: steps=10..12, or steps=5")
      ->type_name("STEPS");
  run->add_flag("--quiet", flags->quiet, "print errors only");
  AddLaunch(run, &flags->session);
  return run;
}

constexpr char kGenerateExamples[] =
    "Takes the weights that a run of a language model left in DIR/model and lets its stages draw\n"
    "token after token. Stdout gets the prompt and what follows it, stderr the speed and what\n"
    "crossed the cuts for each token, prompt included.\n\n"
    "The vocabulary is that of DIR/model: the text may be gone. An empty prompt is the token\n"
    "<|endoftext|>, or a line's end where the run was taught no such token; it is not printed. "
    "When\n"
    "the model's context is full, its later half becomes the beginning of a new one. Equal flags "
    "and\n"
    "stages give equal texts. With compression on, activations cross cuts as the experiment says,\n"
    "which takes codecs that code each position by itself, as those with scope token do.\n\n"
    "Examples:\n"
    "  thinwire generate runs/shakespeare --prompt ROMEO: --tokens 300\n"
    "  thinwire generate runs/shakespeare --temperature 0.8 --top_k 20 --seed 7\n"
    "  thinwire generate runs/shakespeare --compression off --set pipeline.stages=1 <prompt.txt "
    "\\\n"
    "      --prompt -\n"
    "  thinwire generate runs/shakespeare --stages a:4700,b:4700,c:4700,d:4700 --temperature 0\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, run or prompt, 130 interrupted.\n";

CLI::App* AddGenerate(CLI::App* app, thinwire::GenerateFlags* flags) {
  CLI::App* generate =
      app->add_subcommand("generate", "write a text with the language model that a run trained");
  generate->footer(kGenerateExamples);
  generate->add_option("DIR", flags->run, "folder of the run")->required()->transform(kPath);
  generate->add_option("--prompt", flags->prompt, "what the text begins with; -: what stdin has");
  generate->add_option("--tokens", flags->tokens, "tokens to draw")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  generate
      ->add_option("--temperature", flags->temperature,
                   "logits are divided by it; 0: always the most probable token")
      ->capture_default_str();
  generate->add_option("--top_k", flags->top_k, "draw from so many most probable tokens; 0: all")
      ->capture_default_str();
  generate
      ->add_option("--top_p", flags->top_p,
                   "draw from the fewest tokens, most probable first, with this share of the "
                   "probability; 1: all")
      ->capture_default_str();
  generate->add_option("--seed", flags->seed, "another one draws another text")
      ->capture_default_str();
  generate->add_option("--compression", flags->compression, "at cuts: as trained, or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}));
  AddOverrides(generate, &flags->overrides);
  AddStages(generate, &flags->session);
  AddLaunch(generate, &flags->session);
  return generate;
}

void AddNetwork(CLI::App* plan, thinwire::PlanFlags* flags) {
  plan->add_option(
      "--link_mbit", flags->link_mbit,
      "rate of every host's interface in each direction, Mbit/s; inf: infinitely fast");
  plan->add_option("--rtt_ms", flags->rtt_ms, "round trip between two hosts, milliseconds")
      ->capture_default_str();
  plan->add_option("--nic", flags->nic,
                   "shared: a stage's neighbours share its interface; private: each boundary has a "
                   "link of that rate")
      ->capture_default_str();
  plan->add_option("--cores", flags->cores, "all stages share so many cores of one host")
      ->check(CLI::Range(1, 1 << 20));
}

void AddChoices(CLI::App* plan, thinwire::PlanFlags* flags) {
  plan->add_option("--codec", flags->codecs,
                   "a codec, or a pair 'A | G', to try on the link: its text, or the path of a "
                   "library; may stand often. The experiment's and none always are tried")
      ->allow_extra_args(false);
  plan->add_option("--parameters", flags->parameters, "JSON handed to libraries");
  plan->add_option("--microbatches", flags->microbatches,
                   "numbers of microbatches to try on the link, as 1,2,4 (default: the "
                   "experiment's, half and twice as many)")
      ->delimiter(',')
      ->allow_extra_args(false);
  plan->add_option("--schedule", flags->schedules,
                   "schedules to try on the link, as gpipe,terapipe:4 with 4 slices (default: all "
                   "that the experiment allows)")
      ->delimiter(',')
      ->allow_extra_args(false);
}

CLI::App* AddPlan(CLI::App* app, thinwire::PlanFlags* flags) {
  CLI::App* plan = app->add_subcommand(
      "plan",
      "show cuts, sizes, bytes and step times, and what is fastest on a link; trains nothing");
  plan->footer(kPlanExamples);
  AddExperiment(plan, &flags->experiment, &flags->overrides);
  AddNetwork(plan, flags);
  AddChoices(plan, flags);
  plan->add_option("--from", flags->speeds.from,
                   "folder of a run of that model: what it measured of compute and codecs counts")
      ->type_name("DIR")
      ->transform(kPath);
  plan->add_option("--gflops", flags->speeds.gflops,
                   "compute speed of a stage, 10^9 operations per second (default: measured)");
  plan->add_option("--codec_gbps", flags->speeds.codec_gbps,
                   "speed of encoding and of decoding, raw gigabytes per second (default: "
                   "measured)");
  plan->add_option("--format", flags->format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  plan->add_option(
      "--stage_server", flags->session.stage_server,
      "stage server binary whose speed is measured (default: the one beside thinwire)");
  AddOtherBuild(plan, &flags->session);
  return plan;
}

CLI::App* AddProbe(CLI::App* app, thinwire::ProbeFlags* flags) {
  CLI::App* probe = app->add_subcommand(
      "probe", "compare parameter gradients with and without codecs on given weights");
  probe->footer(kProbeExamples);
  probe->add_option("TARGET", flags->target, "folder of a completed run, or an experiment file")
      ->required()
      ->transform(kPath);
  AddOverrides(probe, &flags->overrides);
  probe->add_option("--batches", flags->batches, "batches to compare, at most an epoch's")
      ->capture_default_str();
  probe
      ->add_option("--codec", flags->codecs,
                   "a codec, or a pair 'A | G', to try: its text, or the path of a library; may "
                   "stand often (default: a standard list)")
      ->allow_extra_args(false);
  probe->add_option("--parameters", flags->parameters, "JSON handed to libraries");
  probe->add_option("--levels", flags->levels, "file of codecs to try, one per line")
      ->transform(kPath);
  probe
      ->add_option("--budget", flags->budget,
                   "mean bits per element of all directions of all cuts, to be shared among them: "
                   "one --codec with a rate, or a pair")
      ->check(CLI::PositiveNumber);
  probe
      ->add_option(
          "--format", flags->format,
          "md, csv, json or, of a budget's shares, yaml (default: as the file ends, or md)")
      ->check(CLI::IsMember({"md", "csv", "json", "yaml"}));
  probe->add_option("--out", flags->out, "file to write (default: stdout); may stand often")
      ->allow_extra_args(false)
      ->transform(kPath);
  AddLaunch(probe, &flags->session);
  return probe;
}

CLI::App* AddCodecs(CLI::App* app, thinwire::CodecsFlags* flags) {
  CLI::App* codecs = app->add_subcommand(
      "codecs", "list every codec and compensation; check or measure one or all of them");
  codecs->footer(kCodecsExamples);
  codecs->add_option("--conformance", flags->conformance,
                     "check a codec: its text, as topk(ratio=0.1), or the path of a library");
  codecs->add_flag("--measure", flags->measure,
                   "bytes, error and speed on the tensors of FILES, or of a short run");
  codecs->add_option("FILES", flags->files, "safetensors files, such as a run's captures")
      ->transform(kPath);
  codecs
      ->add_option("--codec", flags->codecs,
                   "measure this one, not the usual ones: its text, or the path of a library; may "
                   "stand often")
      ->allow_extra_args(false);
  codecs->add_option("--parameters", flags->parameters, "JSON handed to libraries");
  codecs->add_option("--format", flags->format, "md or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"md", "json"}));
  codecs->add_option("--seconds", flags->seconds, "longest measurement; fewer rounds than 30 then")
      ->capture_default_str()
      ->check(kSeconds);
  codecs
      ->add_option("--stage_server", flags->session.stage_server,
                   "stage server binary of the short run (default: the one beside thinwire)")
      ->transform(kPath);
  AddOtherBuild(codecs, &flags->session);
  return codecs;
}

constexpr char kDataExamples[] =
    "Downloads by curl, unpacks by tar or unzip, and compares every file with the official\n"
    "checksum. What was interrupted goes on where it ended.\n\n"
    "Examples:\n"
    "  thinwire data list\n"
    "  thinwire data fetch cifar10\n"
    "  thinwire data fetch wikitext2 gpt2-bpe\n"
    "  thinwire data fetch cifar10 --dir /data/cifar10 --from https://mirror.example/datasets\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n";

CLI::App* AddData(CLI::App* app, thinwire::DataFlags* flags) {
  CLI::App* data = app->add_subcommand("data", "list data sets, or download official ones");
  data->footer(kDataExamples);
  data->add_option("ACTION", flags->action, "list or fetch")
      ->required()
      ->check(CLI::IsMember({"list", "fetch"}));
  data->add_option("NAMES", flags->names, "fetch: data sets, or gpt2-bpe, GPT-2's vocabulary");
  data->add_option("--dir", flags->dir, "fetch: folder of the files (default: data/NAME)")
      ->transform(kPath);
  data->add_option("--from", flags->from,
                   "fetch: a mirror, a folder or an address below which the archive, or the files, "
                   "have their official names")
      ->transform(kPath);
  return data;
}

constexpr char kCheckpointExamples[] =
    "DIR is the folder of a run; its checkpoints stand in DIR/checkpoints, a folder for each "
    "step.\n"
    "verify reads all of them and compares every file with its SHA-256. export verifies the "
    "newest,\n"
    "or that of --step, and copies its model to a folder of its own, which init and transformers\n"
    "open like the model of a run that has ended.\n\n"
    "Examples:\n"
    "  thinwire checkpoint list runs/shakespeare\n"
    "  thinwire checkpoint verify runs/shakespeare\n"
    "  thinwire checkpoint export runs/shakespeare\n"
    "  thinwire checkpoint export runs/shakespeare --step 1200 --out models/shakespeare-1200\n"
    "Exit codes: 0 done, 1 a checkpoint is broken or the export failed, 2 wrong usage or no\n"
    "checkpoint, 130 interrupted.\n";

CLI::App* AddCheckpoint(CLI::App* app, thinwire::CheckpointFlags* flags) {
  CLI::App* checkpoint = app->add_subcommand(
      "checkpoint", "list or verify a run's checkpoints, or take the model out of one");
  checkpoint->footer(kCheckpointExamples);
  checkpoint->add_option("ACTION", flags->action, "list, verify or export")
      ->required()
      ->check(CLI::IsMember({"list", "verify", "export"}));
  checkpoint->add_option("DIR", flags->run, "folder of the run")->required()->transform(kPath);
  checkpoint->add_option("--step", flags->step,
                         "verify: this checkpoint alone; export: this one, not the newest");
  checkpoint
      ->add_option("--out", flags->out,
                   "export: folder of the model, new or empty (default: DIR/model-step-N)")
      ->transform(kPath);
  return checkpoint;
}

constexpr char kDoctorExamples[] =
    "Asks each stage server what it is and has, measures the links between neighbours by messages "
    "of\n"
    "the data plane, and codecs on this machine, and says which codec would pay on which link and\n"
    "what is wrong (docs/doctor.md). Without --stages: of two that it starts here. Some seconds "
    "for\n"
    "each link; servers that a run has leased are left alone and named.\n\n"
    "Examples:\n"
    "  thinwire doctor\n"
    "  thinwire doctor --stages 'node{1..4}:4700' --min_mbit 50\n"
    "  thinwire doctor --stages a:4700,b:4700 --format json\n"
    "Exit codes: 0 nothing is wrong, 1 problems, 2 wrong usage, 130 interrupted.\n";

CLI::App* AddDoctor(CLI::App* app, thinwire::DoctorFlags* flags) {
  CLI::App* doctor = app->add_subcommand(
      "doctor", "check stage servers; measure their links, and the codecs that pay on them");
  doctor->footer(kDoctorExamples);
  AddStages(doctor, &flags->session);
  doctor->add_option("--min_mbit", flags->min_mbit, "a slower link is a problem, Mbit/s of payload")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  doctor->add_option("--format", flags->format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  AddLaunch(doctor, &flags->session);
  return doctor;
}

// Prints CLI11's message about a refused command line, or the help that was asked for.
int Leave(const CLI::App& app, const CLI::ParseError& error) {
  const auto met = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool lacks_command = met == CLI::ExitCodes::RequiredError && app.get_subcommands().empty();
  const bool may_be_unknown = met == CLI::ExitCodes::ExtrasError || lacks_command;
  const std::string unknown = may_be_unknown ? thinwire::UnknownArgument(app) : "";
  if (!unknown.empty()) {
    return thinwire::Complain(
        absl::InvalidArgumentError(unknown + "\nRun with --help for more information."),
        thinwire::kExitUsage);
  }
  std::ostringstream help;
  const int code = app.exit(error, help, std::cerr);
  const thinwire::ExitCode printed = thinwire::PrintResult(help.str());
  if (printed != thinwire::kExitDone) return printed;
  return code == 0 ? thinwire::kExitDone : thinwire::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  thinwire::KeepOpenSslToTheEnd();
  thinwire::Interruption interruption;
  signal(SIGPIPE, SIG_IGN);  // a reader of the output may leave; the run goes on
  // Writing beyond the limit on file sizes is then an error that names the file.
  signal(SIGXFSZ, SIG_IGN);
  const auto descriptors = thinwire::RaiseDescriptorLimit(kLeastDescriptors);
  if (!descriptors.ok()) return thinwire::Complain(descriptors.status(), thinwire::kExitFailed);
  thinwire::RunFlags run_flags;
  thinwire::PlanFlags plan_flags;
  CLI::App app(kDescription, "thinwire");
  app.set_version_flag("--version", "thinwire " + thinwire::BuildId());
  app.require_subcommand(1);
  const CLI::App* run = AddRun(&app, &run_flags);
  thinwire::SweepFlags sweep_flags;
  const CLI::App* sweep = thinwire::AddSweep(&app, &sweep_flags);
  thinwire::GenerateFlags generate_flags;
  const CLI::App* generate = AddGenerate(&app, &generate_flags);
  AddPlan(&app, &plan_flags);
  thinwire::TuneFlags tune_flags;
  const CLI::App* tune = thinwire::AddTune(&app, &tune_flags);
  thinwire::ProbeFlags probe_flags;
  const CLI::App* probe = AddProbe(&app, &probe_flags);
  thinwire::CodecsFlags codecs_flags;
  const CLI::App* codecs = AddCodecs(&app, &codecs_flags);
  thinwire::DataFlags data_flags;
  const CLI::App* data = AddData(&app, &data_flags);
  thinwire::CheckpointFlags checkpoint_flags;
  const CLI::App* checkpoint = AddCheckpoint(&app, &checkpoint_flags);
  thinwire::ReportCommandFlags report_flags;
  const CLI::App* report = thinwire::AddReport(&app, &report_flags);
  thinwire::TraceFlags trace_flags;
  const CLI::App* trace = thinwire::AddTrace(&app, &trace_flags);
  thinwire::CompareFlags compare_flags;
  const CLI::App* compare = thinwire::AddCompare(&app, &compare_flags);
  thinwire::DoctorFlags doctor_flags;
  const CLI::App* doctor = AddDoctor(&app, &doctor_flags);
  thinwire::ServeFlags serve_flags;
  const CLI::App* serve = thinwire::AddServe(&app, &serve_flags);
  thinwire::QueueFlags queue_flags;
  const thinwire::QueueCommands queue = thinwire::AddQueueCommands(&app, &queue_flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Leave(app, error);
  }
  if (run->parsed()) return thinwire::RunCommand(run_flags, &interruption);
  if (sweep->parsed()) return thinwire::SweepCommand(sweep_flags, &interruption);
  if (compare->parsed()) return thinwire::CompareCommand(compare_flags);
  if (generate->parsed()) return thinwire::GenerateCommand(generate_flags, &interruption);
  if (tune->parsed()) return thinwire::TuneCommand(tune_flags, &interruption);
  if (probe->parsed()) return thinwire::ProbeCommand(probe_flags, &interruption);
  if (codecs->parsed()) return thinwire::CodecsCommand(codecs_flags, &interruption);
  if (data->parsed()) return thinwire::DataCommand(data_flags, &interruption);
  if (checkpoint->parsed()) return thinwire::CheckpointCommand(checkpoint_flags, &interruption);
  if (report->parsed()) return thinwire::ReportCommand(report_flags);
  if (trace->parsed()) return thinwire::TraceCommand(trace_flags);
  if (doctor->parsed()) return thinwire::DoctorCommand(doctor_flags, &interruption);
  if (serve->parsed()) return thinwire::ServeCommand(serve_flags, &interruption);
  if (queue.submit->parsed()) return thinwire::SubmitCommand(queue_flags, &interruption);
  if (queue.watch->parsed()) return thinwire::WatchCommand(queue_flags, &interruption);
  if (queue.list->parsed()) return thinwire::ListCommand(queue_flags, &interruption);
  if (queue.cancel->parsed()) return thinwire::CancelCommand(queue_flags, &interruption);
  return thinwire::PlanCommand(plan_flags, &interruption);
}
