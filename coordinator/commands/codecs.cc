// `thinwire codecs`: lists, checks and measures codecs.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "coordinator/codecs/conformance.h"
#include "coordinator/codecs/list.h"
#include "coordinator/codecs/measure.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/sample_tensors.h"

namespace thinwire {
namespace {

struct CodecsFlags {
  std::string conformance;          // a codec to check: its text, or the path of a library
  bool measure = false;             // measure codecs...
  std::vector<std::string> files;   // ...on the tensors of these; none: of a short run
  std::vector<std::string> codecs;  // measure these only, as in `conformance`
  std::string parameters;           // JSON for a library
  std::string format = "md";        // md, json
  double seconds = 60;              // of measuring
  SessionOptions session;           // of the short run
};

constexpr char kCodecsExamples[] = R"(Examples:
  thinwire codecs
  thinwire codecs --conformance 'topk(ratio=0.1, scope=sample)'
  thinwire codecs --conformance ./libsign.so --parameters '{"center": false}'
  thinwire codecs --measure runs/quickstart/captures/*.safetensors
  thinwire codecs --measure --codec fp8 --codec ./libsign.so
Exit codes: 0 done or all checks passed, 1 failed, 2 wrong usage, 130 interrupted.
)";

absl::StatusOr<std::vector<CodecSpec>> CodecsToMeasure(const CodecsFlags& flags) {
  std::vector<CodecSpec> specs;
  for (const std::string& text : flags.codecs.empty() ? StandardCodecs() : flags.codecs) {
    ASSIGN_OR_RETURN(const CodecSpec spec, ParseCodecOrLibrary(text, flags.parameters));
    specs.push_back(spec);
  }
  return specs;
}

absl::StatusOr<std::string> Measure(const CodecsFlags& flags, const std::vector<CodecSpec>& codecs,
                                    TextFormat format, Interruption* interruption) {
  ASSIGN_OR_RETURN(const std::vector<SampleTensor> tensors,
                   flags.files.empty() ? CaptureSampleTensors(flags.session, interruption)
                                       : ReadSampleTensors(flags.files));
  MeasureOptions options;
  options.seconds = flags.seconds;
  options.stopped = [interruption] { return interruption->seen(); };
  ASSIGN_OR_RETURN(const Measurements measured, MeasureCodecs(codecs, tensors, options));
  return FormatMeasurements(measured, format);
}

absl::Status CheckFlags(const CodecsFlags& flags) {
  if (!flags.conformance.empty() && flags.measure) {
    return absl::InvalidArgumentError("--conformance and --measure: want one of them");
  }
  if (!flags.measure && (!flags.codecs.empty() || !flags.files.empty())) {
    return absl::InvalidArgumentError("--codec and files belong to --measure");
  }
  for (const std::string& path : flags.files) {
    const auto take_a_piece = [](std::string_view) { return absl::CancelledError(); };
    const absl::Status readable = ReadFile(path, take_a_piece);
    if (!readable.ok() && !absl::IsCancelled(readable)) return readable;
  }
  const bool has_library = IsLibrary(flags.conformance) ||
                           std::any_of(flags.codecs.begin(), flags.codecs.end(), IsLibrary);
  if (!flags.parameters.empty() && !has_library) {
    return absl::InvalidArgumentError("--parameters belong to a library, and none is named");
  }
  return absl::OkStatus();
}

int Conform(const CodecSpec& spec, Interruption* interruption) {
  const absl::StatusOr<bool> passed = PrintConformance(spec, interruption->fd());
  if (interruption->seen()) return kExitInterrupted;
  if (passed.ok()) return *passed ? kExitDone : kExitFailed;
  return Complain(passed.status(), kExitFailed);
}

int CodecsCommand(const CodecsFlags& flags, Interruption* interruption) {
  const absl::Status usage = CheckFlags(flags);
  if (!usage.ok()) return Complain(usage, kExitUsage);
  if (!flags.conformance.empty()) {
    const auto spec = ParseCodecOrLibrary(flags.conformance, flags.parameters);
    if (!spec.ok()) return Complain(spec.status(), kExitUsage);
    return Conform(*spec, interruption);
  }
  const TextFormat format = flags.format == "json" ? TextFormat::kJson : TextFormat::kMarkdown;
  absl::StatusOr<std::string> text;
  if (flags.measure) {
    const auto codecs = CodecsToMeasure(flags);
    if (!codecs.ok()) return Complain(codecs.status(), kExitUsage);
    text = Measure(flags, *codecs, format, interruption);
  } else {
    text = CodecList(format);
  }
  if (interruption->seen()) return kExitInterrupted;
  if (!text.ok()) return Complain(text.status(), kExitFailed);
  return PrintResult(*text);
}

}  // namespace

Command AddCodecs(CLI::App* app) {
  const auto flags = std::make_shared<CodecsFlags>();
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
  return {codecs,
          [flags](Interruption* interruption) { return CodecsCommand(*flags, interruption); }};
}

}  // namespace thinwire
