#include "coordinator/commands/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/checkpoint/export.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/run/progress.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

constexpr char kCheckpointExamples[] =
    R"(DIR is the folder of a run; its checkpoints stand in DIR/checkpoints, a folder for each step.
verify reads all of them and compares every file with its SHA-256. export verifies the newest,
or that of --step, and copies its model to a folder of its own, which init and transformers
open like the model of a run that has ended. With --merge the adapters of a run with `lora` are
added to the weights, file by file, and what is exported is a plain model. Where `base` holds
weights in few bits, those of the folder of `init` are taken instead.

Examples:
  thinwire checkpoint list runs/shakespeare
  thinwire checkpoint verify runs/shakespeare
  thinwire checkpoint export runs/shakespeare
  thinwire checkpoint export runs/shakespeare --step 1200 --out models/shakespeare-1200
  thinwire checkpoint export runs/adapted --merge
Exit codes: 0 done, 1 a checkpoint is broken or the export failed, 2 wrong usage or no
checkpoint, 130 interrupted.
)";

namespace fs = std::filesystem;

// The checkpoints that a command works on.
struct Checkpoints {
  std::string dir;              // RUN/checkpoints
  std::vector<uint64_t> steps;  // ascending, at least one
};

std::string Name(uint64_t step) { return absl::StrCat("step-", step); }

uint64_t BytesOf(const CheckpointManifest& manifest) {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files()) bytes += file.bytes();
  return bytes;
}

std::string SizeOf(const CheckpointManifest& manifest) {
  return FormatBytes(static_cast<double>(BytesOf(manifest)));
}

size_t StagesOf(const CheckpointManifest& manifest) {
  std::set<uint32_t> stages;
  for (const CheckpointFile& file : manifest.files()) stages.insert(file.stage());
  return stages.size();
}

absl::Status CheckFlags(const CheckpointFlags& flags) {
  if (flags.action == "list" && flags.step) {
    return absl::InvalidArgumentError("checkpoint list takes no --step");
  }
  if (flags.action != "export" && !flags.out.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", flags.action, " takes no --out"));
  }
  if (flags.action != "export" && flags.merge) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", flags.action, " takes no --merge"));
  }
  return absl::OkStatus();
}

// Returns the run's checkpoints, or only the one that --step names.
absl::StatusOr<Checkpoints> Find(const CheckpointFlags& flags) {
  std::error_code error;
  if (!fs::is_directory(flags.run, error)) {
    return FileError(flags.run, "cannot open", error ? error.value() : ENOTDIR);
  }
  Checkpoints found;
  found.dir = (fs::path(flags.run) / "checkpoints").string();
  ASSIGN_OR_RETURN(found.steps, FindSteps(found.dir, flags.step));
  return found;
}

constexpr char kRow[] = "%10s %6s  %-24s  %8s %6s%s\n";

std::string Row(uint64_t step, const CheckpointManifest& manifest, const std::string& mark) {
  return absl::StrFormat(kRow, absl::StrCat(step), absl::StrCat(manifest.epoch()),
                         PrintableLine(manifest.written()), SizeOf(manifest),
                         absl::StrCat(StagesOf(manifest)), mark);
}

ExitCode List(const Checkpoints& checkpoints) {
  std::vector<std::string> rows, broken;
  std::string newest = "  newest";  // mark of the first that can be read
  const std::optional<uint64_t> best = BestStep(checkpoints.dir);
  for (auto step = checkpoints.steps.rbegin(); step != checkpoints.steps.rend(); ++step) {
    const auto manifest = ReadManifest(CheckpointPath(checkpoints.dir, *step));
    if (manifest.ok()) {
      rows.push_back(
          Row(*step, *manifest, std::exchange(newest, "") + (*step == best ? "  best" : "")));
    } else {
      rows.push_back(absl::StrFormat(kRow, absl::StrCat(*step), "-", "-", "-", "-", "  broken"));
      broken.emplace_back(manifest.status().message());
    }
  }
  rows.push_back(absl::StrFormat(kRow, "step", "epoch", "written", "size", "stages", ""));
  std::reverse(rows.begin(), rows.end());
  std::reverse(broken.begin(), broken.end());
  const ExitCode printed = PrintResult(absl::StrJoin(rows, ""));
  if (printed != kExitDone || broken.empty()) return printed;
  return Complain(absl::DataLossError(absl::StrJoin(broken, "\n")), kExitFailed);
}

absl::StatusOr<CheckpointManifest> ReadVerified(const std::string& checkpoint) {
  ASSIGN_OR_RETURN(CheckpointManifest manifest, ReadManifest(checkpoint));
  RETURN_IF_ERROR(VerifyCheckpoint(checkpoint, manifest));
  return manifest;
}

// Prints the state of one checkpoint; false if it is broken.
absl::StatusOr<bool> VerifyOne(const Checkpoints& checkpoints, uint64_t step) {
  const std::string path = CheckpointPath(checkpoints.dir, step);
  const auto manifest = ReadVerified(path);
  std::error_code ignored;
  const bool is_gone = !manifest.ok() && !fs::exists(path, ignored);
  const std::string found =
      manifest.ok() ? absl::StrCat("whole, ", manifest->files_size(), " files, ", SizeOf(*manifest))
      : is_gone     ? "removed meanwhile"  // by the run, which goes on
                    : absl::StrCat("broken: ", manifest.status().message());
  RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, "stdout",
                           PrintableLine(absl::StrCat(Name(step), ": ", found)) + "\n"));
  return manifest.ok() || is_gone;
}

ExitCode Verify(const Checkpoints& checkpoints) {
  size_t broken = 0;
  for (const uint64_t step : checkpoints.steps) {
    const absl::StatusOr<bool> is_whole = VerifyOne(checkpoints, step);
    if (!is_whole.ok()) return Complain(is_whole.status(), kExitFailed);
    if (!*is_whole) ++broken;
  }
  if (broken == 0) return kExitDone;
  return Complain(
      absl::DataLossError(absl::StrCat(checkpoints.dir, ": ", broken, " of ",
                                       checkpoints.steps.size(), " checkpoints broken")),
      kExitFailed);
}

// Returns the target folder without a slash at its end.
std::string OutOf(const CheckpointFlags& flags, uint64_t step) {
  if (flags.out.empty()) return (fs::path(flags.run) / ("model-" + Name(step))).string();
  const fs::path out = fs::path(flags.out).lexically_normal();
  return out.has_filename() ? out.string() : out.parent_path().string();
}

// Returns how the adapters of the checkpoint's run are merged. InvalidArgument if it has none.
absl::StatusOr<Mergings> MergingsOf(const CheckpointManifest& manifest) {
  ASSIGN_OR_RETURN(const Experiment experiment,
                   ParseResolved(manifest.experiment(), kManifestFile));
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  Mergings mergings;
  for (const BlockSpec& block : model.blocks) {
    ForEachLayer(block.layers, [&mergings](const LayerSpec& layer) {
      for (const AdapterSpec& adapter : layer.adapters) {
        mergings[adapter.name] = {layer.adapter_scale, layer.transposed};
      }
    });
  }
  if (!mergings.empty()) return mergings;
  return absl::InvalidArgumentError("--merge: the run has no adapters, want one with lora");
}

// Returns the weights of `init` that the checkpoint's run holds in few bits; null if there are
// none.
absl::StatusOr<std::unique_ptr<Originals>> OriginalsOf(const CheckpointManifest& manifest) {
  ASSIGN_OR_RETURN(const Experiment experiment,
                   ParseResolved(manifest.experiment(), kManifestFile));
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  std::vector<FileTensor> tensors;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (parameter.format == WeightFormat::kFP32) continue;
      for (FileTensor& tensor : FileTensors(parameter)) tensors.push_back(std::move(tensor));
    }
  }
  if (tensors.empty() || experiment.init().empty()) return nullptr;
  ASSIGN_OR_RETURN(Originals originals,
                   Annotated(Originals::Open(experiment.init(), tensors), "--merge: init"));
  return std::make_unique<Originals>(std::move(originals));
}

ExitCode Export(const CheckpointFlags& flags, const Checkpoints& checkpoints,
                Interruption* interruption) {
  const uint64_t step = checkpoints.steps.back();
  const std::string path = CheckpointPath(checkpoints.dir, step), out = OutOf(flags, step);
  const absl::Status is_free = CheckExportFolder(out);
  if (!is_free.ok()) return Complain(is_free, kExitUsage);
  const auto manifest = ReadVerified(path);
  if (!manifest.ok()) return Complain(manifest.status(), kExitFailed);
  absl::StatusOr<Mergings> mergings = Mergings();
  if (flags.merge) mergings = MergingsOf(*manifest);
  if (!mergings.ok()) return Complain(mergings.status(), kExitUsage);
  absl::StatusOr<std::unique_ptr<Originals>> originals = nullptr;
  if (flags.merge) originals = OriginalsOf(*manifest);
  if (!originals.ok()) return Complain(originals.status(), kExitFailed);
  interruption->OnFirst(nullptr);  // from here on a signal must let the export clean up
  const auto check = [&] {
    return interruption->seen() ? absl::CancelledError("interrupted") : absl::OkStatus();
  };
  const absl::Status status = ExportModel(path, *manifest, out, check, *mergings, originals->get());
  if (absl::IsCancelled(status)) return Complain(status, kExitInterrupted);
  if (!status.ok()) return Complain(status, kExitFailed);
  return PrintResult(PrintableLine(absl::StrCat(out, ": the model after step ", step, ", epoch ",
                                                manifest->epoch())) +
                     "\n");
}

}  // namespace

int CheckpointCommand(const CheckpointFlags& flags, Interruption* interruption) {
  interruption->OnFirst([] { _exit(kExitInterrupted); });  // nothing has to be ended first
  const absl::Status usage = CheckFlags(flags);
  if (!usage.ok()) return Complain(usage, kExitUsage);
  const absl::StatusOr<Checkpoints> checkpoints = Find(flags);
  if (!checkpoints.ok()) return Complain(checkpoints.status(), kExitUsage);
  if (flags.action == "list") return List(*checkpoints);
  if (flags.action == "verify") return Verify(*checkpoints);
  return Export(flags, *checkpoints, interruption);
}

Command AddCheckpoint(CLI::App* app) {
  const auto flags = std::make_shared<CheckpointFlags>();
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
  checkpoint->add_flag("--merge", flags->merge, "export: add the run's adapters to the weights");
  return {checkpoint,
          [flags](Interruption* interruption) { return CheckpointCommand(*flags, interruption); }};
}

}  // namespace thinwire
