#include "stage_server/run_data.h"

#include <utility>

#include "base/status.h"

namespace thinwire {

absl::StatusOr<RunData::Splits> RunData::Of(
    const std::string& run, const DataConfig& config,
    const std::function<absl::StatusOr<DataSplits>()>& read) {
  const std::string wanted = config.SerializeAsString();
  uint64_t forgets = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (splits_ != nullptr && run_ == run && config_ == wanted) return splits_;
    splits_ = nullptr;  // makes room
    forgets = forgets_;
  }
  ASSIGN_OR_RETURN(DataSplits read_now, read());
  const auto splits = std::make_shared<const DataSplits>(std::move(read_now));
  absl::MutexLock lock(&mutex_);
  if (forgets_ != forgets) return splits;
  run_ = run;
  config_ = wanted;
  splits_ = splits;
  return splits;
}

void RunData::ForgetOthers(const std::string& run) {
  absl::MutexLock lock(&mutex_);
  if (run_ == run && !run.empty()) return;
  splits_ = nullptr;
  ++forgets_;
}

}  // namespace thinwire
