#include "coordinator/commands/report_flags.h"

#include "coordinator/commands/flags.h"

namespace thinwire {
namespace {

constexpr char kReportExamples[] =
    "DIR is the folder of a run, or one with runs below it; runs that differ in their seed alone "
    "are\n"
    "one configuration. The page loads nothing from elsewhere: summary, curves, accuracy against "
    "bytes,\n"
    "time to a target, every cut, every run and its experiment file. A run that has not finished "
    "is\n"
    "shown as such.\n\n"
    "Examples:\n"
    "  thinwire report runs/quickstart\n"
    "  thinwire report runs/none runs/topk10 --out report.html --baseline none\n"
    "  thinwire report runs/sweep --target 0.65 --format md\n"
    "  thinwire report runs --out results.csv\n"
    "Exit codes: 0 done, 1 the file could not be written, 2 wrong usage or no runs.\n";

constexpr char kTraceExamples[] =
    "DIR is the folder of a run with --trace. Says where the time of the traced steps went, stage "
    "by\n"
    "stage, and for what each stage waited; --svg draws one of them. The file itself, "
    "DIR/trace.json,\n"
    "opens in https://ui.perfetto.dev. Evaluation is not traced. docs/schedules.md has the "
    "rest.\n\n"
    "Examples:\n"
    "  thinwire run experiments/quickstart.yaml --trace steps=10..12\n"
    "  thinwire trace runs/quickstart\n"
    "  thinwire trace runs/quickstart --step 11 --svg step.svg\n"
    "  thinwire trace runs/quickstart --format json\n"
    "Exit codes: 0 done, 1 the picture could not be written, 2 wrong usage or no trace.\n";

}  // namespace

CLI::App* AddReport(CLI::App* app, ReportCommandFlags* flags) {
  CLI::App* report = app->add_subcommand("report", "show what runs reached, as one page");
  report->footer(kReportExamples);
  report->add_option("DIR", flags->dirs, "folders of runs, or of folders of runs")
      ->required()
      ->transform(kPath);
  report
      ->add_option("--out", flags->out,
                   "file to write (default: DIR/report.html; stdout of md and csv)")
      ->transform(kPath);
  report
      ->add_option("--format", flags->format,
                   "html, md or csv (default: as the file ends, or html)")
      ->check(CLI::IsMember({"html", "md", "csv"}));
  report->add_option("--title", flags->report.title, "of the page (default: the folder's name)");
  report->add_option("--baseline", flags->report.baseline,
                     "the configuration that sets the target (default: the first without codecs)");
  report->add_option("--target", flags->report.target,
                     "accuracy, a fraction, or loss that is to be reached (default: the baseline's "
                     "last less a point, or plus 0.02 nats)");
  report
      ->add_option("--evaluation", flags->report.inference,
                   "compressed or uncompressed: which evaluation is to reach the target")
      ->capture_default_str()
      ->check(CLI::IsMember({"compressed", "uncompressed"}));
  return report;
}

CLI::App* AddTrace(CLI::App* app, TraceFlags* flags) {
  CLI::App* trace =
      app->add_subcommand("trace", "show where the time of a run's traced steps went");
  trace->footer(kTraceExamples);
  trace->add_option("DIR", flags->run, "folder of the run")->required()->transform(kPath);
  trace->add_option("--step", flags->step, "this step alone (default: all that were traced)");
  trace->add_option("--format", flags->format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  trace
      ->add_option("--svg", flags->svg,
                   "file for a picture of that step, without --step of the last one")
      ->transform(kPath);
  return trace;
}

}  // namespace thinwire
