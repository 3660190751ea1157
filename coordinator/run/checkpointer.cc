#include "coordinator/run/checkpointer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "coordinator/files/record.h"

namespace thinwire {
namespace {

// Returns "model-00001-of-00004.safetensors", "exp_avg-replica-2-00001-of-00004.safetensors" or
// "cut-00001-of-00004-2.safetensors"; `of_stage` numbers the files of one stage.
std::string FileName(const StatePart& part, int stage, int stages, int of_stage) {
  if (!part.tensors().empty()) {
    const std::string whose =
        part.has_replica() ? absl::StrCat("-replica-", part.replica()) : std::string();
    return absl::StrFormat("%s%s-%05d-of-%05d.safetensors", part.tensors(), whose, stage + 1,
                           stages);
  }
  return absl::StrFormat("cut-%05d-of-%05d-%d.safetensors", stage + 1, stages, of_stage);
}

CheckpointFile FileOf(const StatePart& part, int stage, int stages, int of_stage) {
  CheckpointFile file;
  file.set_name(FileName(part, stage, stages, of_stage));
  file.set_stage(static_cast<uint32_t>(stage));
  file.set_tensors(part.tensors());
  if (part.has_replica()) file.set_replica(part.replica());
  if (!part.tensors().empty()) return file;
  file.set_cut(part.cut());
  file.set_direction(part.gradient() ? "gradient" : "activation");
  file.set_end(part.sender() ? "sender" : "receiver");
  if (part.has_piece()) file.set_piece(part.piece());
  if (!part.has_level()) return file;
  file.mutable_level()->set_level(part.level().level());
  file.mutable_level()->set_step(part.level().step());
  file.mutable_level()->set_error_sum(part.level().error_sum());
  file.mutable_level()->set_measured(part.level().measured());
  return file;
}

}  // namespace

Checkpointer::~Checkpointer() {
  if (thread_.joinable()) thread_.join();
}

absl::Status Checkpointer::Finish() {
  if (thread_.joinable()) thread_.join();
  return std::exchange(status_, absl::OkStatus());
}

absl::Status Checkpointer::Hold(CheckpointManifest manifest, const Epochs& epochs,
                                bool codec_state) {
  held_.reset();
  RETURN_IF_ERROR(Finish());
  std::vector<std::string> left_out;
  for (const BaseTensor& tensor : manifest.base().tensors()) left_out.push_back(tensor.name());
  std::vector<TakeSnapshotResponse> snapshots(static_cast<size_t>(fleet_.size()));
  RETURN_IF_ERROR(fleet_.OnAll([&](StageClient& stage) {
    auto taken = stage.TakeSnapshot({codec_state, left_out});
    if (taken.ok()) snapshots[static_cast<size_t>(stage.server())] = *std::move(taken);
    return taken.status();
  }));
  manifest.set_format(kManifestFormat);
  manifest.set_written(UtcNow());
  Held held;
  std::vector<int> of_stage(static_cast<size_t>(fleet_.stages()));
  for (int server = 0; server < fleet_.size(); ++server) {
    const TakeSnapshotResponse& taken = snapshots[static_cast<size_t>(server)];
    const int stage = fleet_.server(server).stage();
    for (int i = 0; i < taken.files_size(); ++i) {
      const int number = of_stage[static_cast<size_t>(stage)]++;
      *manifest.add_files() = FileOf(taken.files(i).part(), stage, fleet_.stages(), number);
      held.sources.push_back({server, static_cast<uint32_t>(i)});
    }
  }
  const auto written = static_cast<std::ptrdiff_t>(log_.kept().epochs());
  held.manifest = std::move(manifest);
  held.epochs = {epochs.begin() + written, epochs.end()};
  held_ = std::move(held);
  return absl::OkStatus();
}

void Checkpointer::WriteHeld() {
  if (!held_) return;
  thread_ =
      std::thread([this, held = *std::move(held_)]() mutable { status_ = Write(std::move(held)); });
  held_.reset();
}

absl::Status Checkpointer::WriteBest(uint64_t step) {
  if (held_) {
    held_->is_best = true;
    WriteHeld();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Finish());
  RETURN_IF_ERROR(SetBest(options_.folder, step));
  return PruneCheckpoints(options_.folder, options_.keep);
}

absl::Status Checkpointer::WriteFile(const CheckpointWriter& writer, const Source& source,
                                     CheckpointFile* file) {
  StageClient& stage = fleet_.server(source.server);
  absl::Status fetched;
  const absl::Status written = writer.Write(file, [&](const FileSink& sink) {
    absl::Status stored;
    fetched = stage.ReadSnapshot(source.file, [&](const FileChunk& chunk) {
      stored = sink(chunk.data());
      return stored;
    });
    if (!stored.ok()) fetched = absl::OkStatus();  // writing failed, not the stage
    return stored.ok() ? fetched : stored;
  });
  if (!fetched.ok()) {
    fleet_.Fail({stage.server(), Failure::Kind::kError, fetched});
  } else if (!written.ok()) {
    fleet_.Fail({Failure::kCoordinator, Failure::Kind::kError, written});
  }
  return written;
}

absl::Status Checkpointer::Write(Held held) {
  CheckpointManifest& manifest = held.manifest;
  const auto own = [this](absl::Status status) {
    if (!status.ok()) fleet_.Fail({Failure::kCoordinator, Failure::Kind::kError, status});
    return status;
  };
  auto writer = CheckpointWriter::Begin(options_.folder, manifest.step());
  if (!writer.ok()) return own(writer.status());
  for (int i = 0; i < manifest.files_size(); ++i) {
    RETURN_IF_ERROR(
        WriteFile(**writer, held.sources[static_cast<size_t>(i)], manifest.mutable_files(i)));
  }
  RETURN_IF_ERROR(own(log_.Append(held.epochs)));
  *manifest.mutable_progress()->mutable_epochs_kept() = log_.kept();
  RETURN_IF_ERROR(own((*writer)->Commit(manifest, options_.beside)));
  if (held.is_best) RETURN_IF_ERROR(own(SetBest(options_.folder, manifest.step())));
  RETURN_IF_ERROR(own(PruneCheckpoints(options_.folder, options_.keep)));
  on_written_(manifest);
  return absl::OkStatus();
}

}  // namespace thinwire
