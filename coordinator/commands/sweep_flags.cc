#include "coordinator/commands/sweep_flags.h"

#include "coordinator/commands/flags.h"

namespace thinwire {
namespace {

constexpr char kSweepExamples[] =
    "FILE is a sweep, which names an experiment, rows, axes and seeds (docs/sweeps.md), or an\n"
    "experiment, with --grid or --seeds. Each run has a folder, OUT/runs/ROW-seedN. The same "
    "command\n"
    "goes on after any interruption: what is finished stays, what is not goes on from its "
    "checkpoint.\n\n"
    "Examples:\n"
    "  thinwire sweep experiments/sweeps/codecs.yaml --out runs/codecs\n"
    "  thinwire sweep experiments/quickstart.yaml --seeds 1,2,3 --out runs/ratios \\\n"
    "      --grid compression.activations.ratio=0.5,0.1,0.02 --grid optimizer.lr=0.05,0.1\n"
    "  thinwire sweep my.yaml --jobs 2 --set pipeline.threads=1\n"
    "  thinwire sweep my.yaml --stages a:4700,b:4700 --stages c:4700,d:4700\n"
    "  thinwire sweep my.yaml --only 'none|topk.*' --list\n"
    "  thinwire sweep --export csv runs/my\n"
    "Exit codes: 0 done, 1 a run failed, 2 wrong usage or a row is refused, 130 interrupted.\n";

constexpr char kCompareExamples[] =
    "LEFT and RIGHT are each a run's folder, a sweep's, or one that holds runs' folders. Runs pair "
    "by row\n"
    "and seed.\n\n"
    "Examples:\n"
    "  thinwire compare runs/quickstart runs/topk2\n"
    "  thinwire compare runs/codecs runs/codecs-of-last-week\n"
    "Exit codes: 0 done, 2 wrong usage, or nothing to compare.\n";

}  // namespace

CLI::App* AddSweep(CLI::App* app, SweepFlags* flags) {
  CLI::App* sweep =
      app->add_subcommand("sweep", "run several experiments with several seeds; compare them");
  sweep->footer(kSweepExamples);
  sweep->add_option("FILE", flags->file, "sweep or experiment file (YAML)")
      ->required()
      ->transform(kPath);
  AddOverrides(sweep, &flags->overrides);
  sweep
      ->add_option("--grid", flags->grids,
                   "an axis, FIELD=VALUE,VALUE: each row with each value; may stand often")
      ->allow_extra_args(false);
  sweep->add_option("--seeds", flags->seeds, "as 1,2,3 (default: the sweep's or the experiment's)")
      ->delimiter(',')
      ->allow_extra_args(false);
  sweep->add_option("--only", flags->only,
                    "rows whose whole name matches this regular expression (default: all)");
  sweep->add_option("--out", flags->out, "folder of the sweep (default: runs/NAME)")
      ->transform(kPath);
  sweep->add_option("--baseline", flags->baseline,
                    "row that the others are compared to (default: the sweep's, or the first)");
  sweep->add_option("--jobs", flags->jobs, "runs at once on this machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  sweep->add_flag("--list", flags->list, "print what is done and what is missing, run nothing");
  sweep
      ->add_option("--export", flags->export_kind,
                   "csv: write the tables of results.sqlite of the sweep in the folder FILE to "
                   "FILE/csv, run nothing")
      ->check(CLI::IsMember({"csv"}));
  sweep
      ->add_option(
          "--stages", flags->stages,
          "stage servers that are already running, for one run at a time; may stand often: "
          "so many runs at once")
      ->type_name("HOST:PORT,HOST:PORT,...")
      ->allow_extra_args(false);
  sweep
      ->add_option("--stages_wait", flags->session.wait_seconds,
                   "seconds to wait for the servers of --stages to be there and free")
      ->capture_default_str()
      ->check(kSeconds);
  AddSecurity(sweep, &flags->session.security);
  AddLaunch(sweep, &flags->session);
  return sweep;
}

CLI::App* AddCompare(CLI::App* app, CompareFlags* flags) {
  CLI::App* compare = app->add_subcommand(
      "compare",
      "two runs or sweeps: fields that differ, first diverging step, epochs, paired "
      "differences");
  compare->footer(kCompareExamples);
  compare->add_option("LEFT", flags->left, "folder")->required()->transform(kPath);
  compare->add_option("RIGHT", flags->right, "folder")->required()->transform(kPath);
  return compare;
}

}  // namespace thinwire
