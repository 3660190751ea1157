// Small checkpoints for tests.
#pragma once

#include <string>

#include "base/safetensors.h"
#include "coordinator/checkpoint/folder.h"
#include "gtest/gtest.h"

namespace thinwire {

inline constexpr char kFirst[] = "model-00001-of-00002.safetensors";
inline constexpr char kSecond[] = "model-00002-of-00002.safetensors";
inline constexpr char kMomentum[] = "momentum_buffer-00001-of-00002.safetensors";

// Returns a manifest of a run with 10 steps in an epoch; it names no files yet.
inline CheckpointManifest ManifestOf(uint64_t step) {
  CheckpointManifest manifest;
  manifest.set_format(kManifestFormat);
  manifest.set_step(step);
  manifest.set_epoch(static_cast<uint32_t>((step - 1) / 10 + 1));
  manifest.set_steps_per_epoch(10);
  manifest.set_written("2026-01-31T12:00:00.000Z");
  manifest.mutable_progress()->mutable_epochs_kept();
  return manifest;
}

// Writes a safetensors file with one tensor, which has the file's name, in pieces of a few bytes.
inline absl::Status AddFile(const CheckpointWriter& writer, const std::string& name,
                            const std::string& tensors, const std::string& data,
                            CheckpointManifest* manifest) {
  CheckpointFile* const file = manifest->add_files();
  file->set_name(name);
  file->set_tensors(tensors);
  const StoredTensor tensor = {name, "U8", {static_cast<int64_t>(data.size())}, data};
  return writer.Write(file, [&](const FileSink& sink) {
    return WriteSafetensors({{}, {tensor}}, 3, sink);
  });
}

// Makes a whole checkpoint of two stages, whose tensors hold `data`. Returns its path.
inline std::string MakeCheckpoint(const std::string& checkpoints, uint64_t step,
                                  const std::string& data = "abcd") {
  const auto writer = CheckpointWriter::Begin(checkpoints, step);
  EXPECT_TRUE(writer.ok()) << writer.status();
  CheckpointManifest manifest = ManifestOf(step);
  absl::Status status = AddFile(**writer, kFirst, "model", data, &manifest);
  status.Update(AddFile(**writer, kSecond, "model", data, &manifest));
  status.Update(AddFile(**writer, kMomentum, "momentum_buffer", data, &manifest));
  manifest.mutable_files(1)->set_stage(1);
  status.Update((*writer)->Commit(manifest, {{"config.json", "{}\n"}}));
  EXPECT_TRUE(status.ok()) << status;
  return CheckpointPath(checkpoints, step);
}

}  // namespace thinwire
