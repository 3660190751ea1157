// The data that a run has made this server read, so that its next generation need not read them
// again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "data/dataset.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Thread-safe.
class RunData {
 public:
  using Splits = std::shared_ptr<const DataSplits>;

  // Returns what was read last, if that was for this run and the same `config`; else forgets it and
  // returns what `read` does, and holds it unless it was to be forgotten meanwhile.
  absl::StatusOr<Splits> Of(const std::string& run, const DataConfig& config,
                            const std::function<absl::StatusOr<DataSplits>()>& read);

  // Forgets what was read for other runs than `run`.
  void ForgetOthers(const std::string& run);
  void Forget() { ForgetOthers(""); }

 private:
  absl::Mutex mutex_;
  std::string run_ ABSL_GUARDED_BY(mutex_);
  std::string config_ ABSL_GUARDED_BY(mutex_);  // serialised
  Splits splits_ ABSL_GUARDED_BY(mutex_);       // null: nothing is held
  uint64_t forgets_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
