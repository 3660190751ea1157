// Writing of checkpoints while the stages go on training.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/model_files.h"
#include "google/protobuf/repeated_field.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

// Options for writing checkpoints.
struct CheckpointerOptions {
  std::string folder;  // folder of the run's checkpoints
  uint32_t keep = 1;
  SideFiles beside;   // files beside the model, see SideFilesOf
  EpochsKept epochs;  // epochs of the checkpoint that the run continues from
};

// Checkpoints of one run. One thread at a time.
class Checkpointer {
 public:
  // `on_written` is called on a thread of this object.
  using OnWritten = std::function<void(const CheckpointManifest&)>;

  // `fleet` must outlive this object.
  Checkpointer(CheckpointerOptions options, Fleet* fleet, OnWritten on_written)
      : options_(std::move(options)),
        fleet_(*fleet),
        on_written_(std::move(on_written)),
        log_(options_.folder, options_.epochs) {}
  // Waits for a checkpoint that is being written, unless the fleet's calls were cancelled.
  ~Checkpointer();

  using Epochs = google::protobuf::RepeatedPtrField<EpochRecord>;

  // Makes all stages, which must be between two steps, copy their state in their own memory; that
  // replaces an older copy. The base of `manifest`, if it has one, is left out. Waits first for a
  // checkpoint that is being written. `manifest` lacks the files and the epochs; `epochs` are all
  // complete epochs of the run.
  absl::Status Hold(CheckpointManifest manifest, const Epochs& epochs, bool codec_state);

  // Begins to fetch and write the held state, unless there is none or it has been written. The
  // checkpoint exists when all its files are on the disk. An error, of writing (which is the
  // coordinator's own) or of a stage, fails the fleet.
  void WriteHeld();

  // Makes the checkpoint of the held or the last written state, after `step`, the best one: begins
  // to write it, if that has not begun, and keeps it until another is better.
  absl::Status WriteBest(uint64_t step);

  // Waits until the last checkpoint that WriteHeld began is written.
  absl::Status Finish();

 private:
  // Place where a file is fetched: its index among those that a server holds.
  struct Source {
    int server = 0;
    uint32_t file = 0;
  };
  // A manifest with the source of each file, and the epochs that no earlier checkpoint has.
  struct Held {
    CheckpointManifest manifest;
    std::vector<Source> sources;
    std::vector<EpochRecord> epochs;
    bool is_best = false;
  };

  absl::Status Write(Held held);
  absl::Status WriteFile(const CheckpointWriter& writer, const Source& source,
                         CheckpointFile* file);

  const CheckpointerOptions options_;
  Fleet& fleet_;
  const OnWritten on_written_;
  std::optional<Held> held_;
  EpochLog log_;         // used by the writing thread only
  absl::Status status_;  // set by the writing thread, read after its end
  std::thread thread_;
};

}  // namespace thinwire
