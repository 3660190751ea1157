// RUN/checkpoints/epochs.jsonl: the results of the run's complete epochs, one EpochRecord a line.
// Checkpoints share the file, so that none grows with the number of epochs. The manifest of a
// checkpoint says how much of the file's beginning belongs to it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

inline constexpr char kEpochLog[] = "epochs.jsonl";

// Writer of the file. Errors name the file. One thread at a time.
class EpochLog {
 public:
  // `kept` is the beginning of the file in the folder `checkpoints` that belongs to the run. The
  // rest is dropped with the next Append.
  EpochLog(const std::string& checkpoints, EpochsKept kept);

  const EpochsKept& kept() const { return kept_; }
  // Writes those of `epochs` that are not yet kept; they are on the disk when it returns. DataLoss
  // if the file has lost some of the kept ones.
  absl::Status Append(const std::vector<EpochRecord>& epochs);

 private:
  absl::Status Write(int file, const std::string& lines) const;

  const std::string folder_, path_;
  EpochsKept kept_;
};

// Returns the epochs that `kept` describes. DataLoss says what is missing or not what was written.
absl::StatusOr<std::vector<EpochRecord>> ReadEpochs(const std::string& checkpoints,
                                                    const EpochsKept& kept);

}  // namespace thinwire
