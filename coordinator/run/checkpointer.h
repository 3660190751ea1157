// Writes checkpoints of a run's stages while they train on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/checkpoint/epoch_log.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/model_files.h"
#include "google/protobuf/repeated_field.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

struct CheckpointerOptions {
  std::string folder;  // of the run's checkpoints
  uint32_t keep = 1;
  SideFiles beside;   // the model's, see SideFilesOf
  EpochsKept epochs;  // of the checkpoint that the run goes on from
};

// One thread at a time.
class Checkpointer {
 public:
  // `on_written` is called on a thread of this object.
  using OnWritten = std::function<void(const CheckpointManifest&)>;

  // `fleet` outlives this object.
  Checkpointer(CheckpointerOptions options, Fleet* fleet, OnWritten on_written)
      : options_(std::move(options)),
        fleet_(*fleet),
        on_written_(std::move(on_written)),
        log_(options_.folder, options_.epochs) {}
  // Breaks off what is being written only with the fleet's calls.
  ~Checkpointer();

  using Epochs = google::protobuf::RepeatedPtrField<EpochRecord>;

  // Copies the state of all stages, which stand between two steps, into their memory, in place of
  // what they held. Waits first for what is being written. `manifest` lacks the files and the
  // epochs, which are all of the run that are complete.
  absl::Status Hold(CheckpointManifest manifest, const Epochs& epochs, bool codec_state);

  // Begins to fetch and to write what is held, if anything is and has not been written; the
  // checkpoint is there when all its files are on the disk. An error of writing, which is the
  // coordinator's own, or of a stage, fails the fleet.
  void WriteHeld();

  // Waits until the last one that WriteHeld began is there.
  absl::Status Finish();

 private:
  // A manifest, and the epochs that no checkpoint before it has.
  struct Held {
    CheckpointManifest manifest;
    std::vector<EpochRecord> epochs;
  };

  absl::Status Write(Held held);
  absl::Status WriteFile(const CheckpointWriter& writer, int file_of_stage, CheckpointFile* file);

  const CheckpointerOptions options_;
  Fleet& fleet_;
  const OnWritten on_written_;
  std::optional<Held> held_;
  EpochLog log_;         // the thread's, likewise
  absl::Status status_;  // the thread's, between its end and the next
  std::thread thread_;
};

}  // namespace thinwire
