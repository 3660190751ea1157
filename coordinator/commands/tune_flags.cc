#include "coordinator/commands/tune_flags.h"

#include "coordinator/commands/flags.h"

namespace thinwire {
namespace {

constexpr char kTuneExamples[] =
    "Which codec reaches the target soonest over this link? Candidates, a built-in library of "
    "pairs\n"
    "or --codec, are cut by the step that each makes on the link, then by what it does to the\n"
    "gradient of some batches, then by short trainings on this machine, in rungs: each is longer,\n"
    "has more seeds and half the candidates, beside `none` with the same seeds. All of it takes "
    "at\n"
    "most a fifth of training each candidate that is trained in full with every seed. Accuracy "
    "does\n"
    "not depend on the link, so none is needed. OUT gets tuned.yaml, the experiment with the "
    "choice,\n"
    "and tune.json; the same command goes on after any interruption. docs/tune.md has the rest.\n\n"
    "Examples:\n"
    "  thinwire tune my.yaml --link_mbit 100 --set pipeline.threads=1\n"
    "  thinwire tune experiments/shakespeare.yaml --link_mbit 50 --rtt_ms 100 --max_loss 0.02\n"
    "  thinwire tune my.yaml --link_mbit 20 --codec 'ecsq(rate=2)' --codec 'fp8 | "
    "uniform(bits=4)'\n"
    "  thinwire run runs/my-tune/tuned.yaml\n"
    "A pair 'A | G' has A on activations and G on gradients.\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or experiment, 130 interrupted.\n";

void AddLink(CLI::App* tune, TuneFlags* flags) {
  tune->add_option("--link_mbit", flags->link_mbit,
                   "rate of every host's interface in each direction, Mbit/s")
      ->required();
  tune->add_option("--rtt_ms", flags->rtt_ms, "round trip between two hosts, milliseconds")
      ->capture_default_str();
  tune->add_option("--nic", flags->nic,
                   "shared: a stage's neighbours share its interface; private: each boundary has a "
                   "link of that rate")
      ->capture_default_str();
  tune->add_option("--cores", flags->cores, "all stages share so many cores of one host")
      ->check(CLI::Range(1, 1 << 20));
  tune->add_option("--from", flags->speeds.from,
                   "folder of a run of that model: what it measured of compute and codecs counts")
      ->type_name("DIR")
      ->transform(kPath);
  tune->add_option("--gflops", flags->speeds.gflops,
                   "compute speed of a stage, 10^9 operations per second (default: measured)");
  tune->add_option("--codec_gbps", flags->speeds.codec_gbps,
                   "speed of encoding and of decoding, raw gigabytes per second (default: "
                   "measured)");
}

void AddSearch(CLI::App* tune, TuneFlags* flags) {
  tune->add_option("--codec", flags->codecs,
                   "a codec, or a pair 'A | G', in place of the library: its text, or the path of "
                   "a library file; may stand often. The experiment's own always is a candidate")
      ->allow_extra_args(false);
  tune->add_option("--parameters", flags->parameters, "JSON handed to library files");
  tune->add_option("--microbatches", flags->microbatches,
                   "numbers of microbatches, of which each candidate takes its fastest (default: "
                   "the experiment's)")
      ->delimiter(',')
      ->allow_extra_args(false);
  tune->add_option("--candidates", flags->candidates, "codecs to train, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  tune->add_option("--seeds", flags->seeds, "of the last rung")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  tune->add_option("--batches", flags->batches, "whose gradients are compared")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  tune->add_option("--jobs", flags->jobs, "runs at once on this machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
}

}  // namespace

CLI::App* AddTune(CLI::App* app, TuneFlags* flags) {
  CLI::App* tune = app->add_subcommand(
      "tune", "find the codec that reaches a target soonest over a link, by short trainings");
  tune->footer(kTuneExamples);
  tune->add_option("EXPERIMENT", flags->experiment, "experiment file (YAML)")
      ->required()
      ->transform(kPath);
  AddOverrides(tune, &flags->overrides);
  AddLink(tune, flags);
  tune->add_option("--max_loss", flags->max_loss,
                   "how much worse than without codecs it may end: points of accuracy, or of "
                   "language models nats of validation loss (default: 1 point, 0.02 nats)");
  tune->add_option("--target", flags->target,
                   "what is to be reached: per cent of accuracy, or nats (default: what the "
                   "experiment without codecs is predicted to end at, less --max_loss)");
  AddSearch(tune, flags);
  tune->add_option("--out", flags->out, "folder (default: runs/NAME-tune)")->transform(kPath);
  tune->add_option("--format", flags->format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  AddLaunch(tune, &flags->session);
  return tune;
}

}  // namespace thinwire
