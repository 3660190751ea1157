#include "stage_server/run_data.h"

#include <utility>

#include "base/status.h"

namespace thinwire {

absl::StatusOr<RunData::Splits> RunData::Of(
    const std::string& run, const DataConfig& config,
    const std::function<absl::StatusOr<DataSplits>()>& read) {
  const std::string wanted = config.SerializeAsString();
  {
    absl::MutexLock lock(&mutex_);
    if (splits_ != nullptr && run_ == run && config_ == wanted) return splits_;
    splits_ = nullptr;  // makes room
  }
  ASSIGN_OR_RETURN(DataSplits splits, read());
  absl::MutexLock lock(&mutex_);
  run_ = run;
  config_ = wanted;
  splits_ = std::make_shared<const DataSplits>(std::move(splits));
  return splits_;
}

void RunData::ForgetOthers(const std::string& run) {
  absl::MutexLock lock(&mutex_);
  if (run_ != run || run.empty()) splits_ = nullptr;
}

}  // namespace thinwire
