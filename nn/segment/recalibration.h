// Batch norm's running statistics re-estimated for one evaluation, then put back. The estimates are
// plain means over batches of each batch's mean and unbiased variance, as PyTorch's
// torch.optim.swa_utils.update_bn takes them.
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
  // Keeps a copy of the running statistics of `segments` in host memory. Segments and `device`,
  // which is theirs, outlive this object.
  static absl::StatusOr<std::unique_ptr<Recalibration>> Start(std::vector<Segment*> segments,
                                                              Device* device);

  // Takes in the statistics that the last batch left behind.
  absl::Status AddBatch();

  // Running statistics are the means from now on. FailedPrecondition without a batch.
  absl::Status Apply();

  // Running statistics are those that Start met, bit for bit. At any time, also after an error;
  // the owner's duty, since it can fail.
  absl::Status Restore();

 private:
  // One parameter that is running statistics: a mean or a variance per channel.
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
