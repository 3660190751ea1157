// RUN/checkpoints/epochs.jsonl: what each complete epoch of the run came to, an EpochRecord a line.
// Checkpoints share it, so that each is of its own epoch's size: a manifest says how much of its
// begin is the checkpoint's.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

inline constexpr char kEpochLog[] = "epochs.jsonl";

// Errors name the file. One thread at a time.
class EpochLog {
 public:
  // `kept`: what of the file in that folder is of the run; the rest is dropped with the next
  // Append.
  EpochLog(const std::string& checkpoints, EpochsKept kept);

  const EpochsKept& kept() const { return kept_; }
  // Writes the epochs behind those that are kept; they are on the disk when it returns. DataLoss
  // where the file has lost some of them.
  absl::Status Append(const std::vector<EpochRecord>& epochs);

 private:
  absl::Status Write(int file, const std::string& lines) const;

  const std::string folder_, path_;
  EpochsKept kept_;
};

// The epochs that are kept there. DataLoss says what is missing or not what was written.
absl::StatusOr<std::vector<EpochRecord>> ReadEpochs(const std::string& checkpoints,
                                                    const EpochsKept& kept);

}  // namespace thinwire
