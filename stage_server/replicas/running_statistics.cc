#include "stage_server/replicas/running_statistics.h"

#include "base/status.h"

namespace thinwire {

void RunningStatistics::Add(uint32_t number, Segment* segment, Device* device) {
  device_ = device;
  OfSegment of;
  of.number = number;
  of.segment = segment;
  for (const Parameter& parameter : segment->parameters()) {
    if (parameter.spec.role != ParameterSpec::Role::kStatistics) continue;
    of.elements += parameter.value.elements();
    of.tensors.push_back(parameter.value);
  }
  if (of.elements > 0) segments_.push_back(std::move(of));
}

absl::StatusOr<std::vector<float>> RunningStatistics::Read(const OfSegment& of) const {
  std::vector<float> values(static_cast<size_t>(of.elements));
  float* to = values.data();
  for (const Tensor& tensor : of.tensors) {
    RETURN_IF_ERROR(ToStatus(device_->CopyToHost(to, tensor.data(), tensor.bytes())));
    to += tensor.elements();
  }
  return values;
}

absl::Status RunningStatistics::Write(const std::vector<float>& values, const OfSegment& to) const {
  const float* from = values.data();
  for (const Tensor& tensor : to.tensors) {
    RETURN_IF_ERROR(ToStatus(device_->CopyFromHost(tensor.data(), from, tensor.bytes())));
    from += tensor.elements();
  }
  return to.segment->ParametersChanged();
}

absl::Status RunningStatistics::Keep() {
  for (OfSegment& of : segments_) {
    ASSIGN_OR_RETURN(of.kept, Read(of));
    of.left.clear();
  }
  return absl::OkStatus();
}

absl::Status RunningStatistics::Restore() const {
  for (const OfSegment& of : segments_) RETURN_IF_ERROR(Write(of.kept, of));
  return absl::OkStatus();
}

absl::Status RunningStatistics::SetMeans(const OfSegment& of) const {
  std::vector<double> sum(of.kept.size());
  for (const std::vector<float>& values : of.left) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(values[i]);
  }
  std::vector<float> means(sum.size());
  for (size_t i = 0; i < means.size(); ++i) {
    means[i] = static_cast<float>(sum[i] / static_cast<double>(of.left.size()));
  }
  return Write(means, of);
}

}  // namespace thinwire
