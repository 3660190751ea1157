#include "coordinator/commands/codecs_command.h"

#include <algorithm>

#include "base/file.h"
#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "coordinator/codecs/list.h"
#include "coordinator/codecs/measure.h"
#include "coordinator/commands/conformance_command.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/speeds/sample_tensors.h"

namespace thinwire {
namespace {

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

}  // namespace

int CodecsCommand(const CodecsFlags& flags, Interruption* interruption) {
  const absl::Status usage = CheckFlags(flags);
  if (!usage.ok()) return Complain(usage, kExitUsage);
  if (!flags.conformance.empty()) {
    const auto spec = ParseCodecOrLibrary(flags.conformance, flags.parameters);
    if (!spec.ok()) return Complain(spec.status(), kExitUsage);
    return ConformanceCommand(*spec, interruption);
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

}  // namespace thinwire
