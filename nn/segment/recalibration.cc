#include "nn/segment/recalibration.h"

#include <utility>

#include "base/status.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<Recalibration>> Recalibration::Start(std::vector<Segment*> segments,
                                                                    Device* device) {
  std::unique_ptr<Recalibration> recalibration(new Recalibration(std::move(segments), device));
  for (Segment* segment : recalibration->segments_) {
    for (const Parameter& parameter : segment->parameters()) {
      if (parameter.spec.role != ParameterSpec::Role::kStatistics) continue;
      Statistics one;
      one.tensor = parameter.value;
      RETURN_IF_ERROR(recalibration->Read(one.tensor, &one.kept));
      one.sum.resize(one.kept.size());
      recalibration->statistics_.push_back(std::move(one));
    }
  }
  return recalibration;
}

absl::Status Recalibration::AddBatch() {
  std::vector<float> of_batch;
  for (Statistics& one : statistics_) {
    RETURN_IF_ERROR(Read(one.tensor, &of_batch));
    for (size_t i = 0; i < of_batch.size(); ++i) one.sum[i] += static_cast<double>(of_batch[i]);
  }
  ++batches_;
  return absl::OkStatus();
}

absl::Status Recalibration::Apply() {
  if (batches_ == 0) return absl::FailedPreconditionError("recalibration: no batch was added");
  for (const Statistics& one : statistics_) {
    std::vector<float> mean(one.sum.size());
    for (size_t i = 0; i < mean.size(); ++i) {
      mean[i] = static_cast<float>(one.sum[i] / static_cast<double>(batches_));
    }
    RETURN_IF_ERROR(Write(mean, one.tensor));
  }
  return ParametersChanged();
}

absl::Status Recalibration::Restore() {
  for (const Statistics& one : statistics_) RETURN_IF_ERROR(Write(one.kept, one.tensor));
  return ParametersChanged();
}

absl::Status Recalibration::Read(const Tensor& tensor, std::vector<float>* values) const {
  values->resize(static_cast<size_t>(tensor.elements()));
  return ToStatus(device_->CopyToHost(values->data(), tensor.data(), tensor.bytes()));
}

absl::Status Recalibration::Write(const std::vector<float>& values, const Tensor& tensor) const {
  return ToStatus(device_->CopyFromHost(tensor.data(), values.data(), tensor.bytes()));
}

absl::Status Recalibration::ParametersChanged() const {
  if (statistics_.empty()) return absl::OkStatus();
  for (Segment* segment : segments_) RETURN_IF_ERROR(segment->ParametersChanged());
  return absl::OkStatus();
}

}  // namespace thinwire
