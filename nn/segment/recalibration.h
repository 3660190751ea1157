// Re-estimates batch norm's running statistics for one evaluation and restores them afterwards. The
// estimates are plain means, over batches, of each batch's mean and unbiased variance. PyTorch's
// torch.optim.swa_utils.update_bn takes the same.
//
//   Start;  per batch: every segment's Forward with Mode::kRecalibrate, AddBatch;
//   Apply;  any number of Forwards with Mode::kEvaluate;  Restore.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/segment/segment.h"
#include "tensor/device.h"

namespace thinwire {

class Recalibration {
 public:
  // Copies the running statistics of `segments` to host memory. The segments and their `device`
  // outlive this object.
  static absl::StatusOr<std::unique_ptr<Recalibration>> Start(std::vector<Segment*> segments,
                                                              Device* device);

  // Adds the statistics that the last batch left behind.
  absl::Status AddBatch();

  // Sets the running statistics to the means. FailedPrecondition without a batch.
  absl::Status Apply();

  // Restores the running statistics that Start found, bit for bit. May be called at any time, also
  // after an error. It can fail, so the owner must call it; the destructor does not.
  absl::Status Restore();

 private:
  // A parameter that is running statistics: a mean or a variance per channel.
  struct Statistics {
    Tensor tensor;  // the parameter's own memory
    std::vector<float> kept;
    std::vector<double> sum;  // over batches
  };

  Recalibration(std::vector<Segment*> segments, Device* device)
      : segments_(std::move(segments)), device_(device) {}
  absl::Status Read(const Tensor& tensor, std::vector<float>* values) const;
  absl::Status Write(const std::vector<float>& values, const Tensor& tensor) const;
  absl::Status ParametersChanged() const;

  const std::vector<Segment*> segments_;
  Device* const device_;
  std::vector<Statistics> statistics_;
  int64_t batches_ = 0;
};

}  // namespace thinwire
