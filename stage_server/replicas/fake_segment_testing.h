// A segment of parameters without layers, for tests.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "nn/segment/segment.h"
#include "tensor/cpu/device.h"

namespace thinwire {

class FakeSegment : public Segment {
 public:
  // Makes parameters p0, p1, ... of these values, with gradients of zeros.
  FakeSegment(std::initializer_list<std::vector<float>> values) {
    for (const std::vector<float>& of_one : values) {
      Parameter& parameter = parameters_.emplace_back();
      parameter.spec.name = "p" + std::to_string(parameters_.size() - 1);
      parameter.spec.shape = {static_cast<int64_t>(of_one.size())};
      parameter.value = Of(of_one);
      parameter.gradient = Of(std::vector<float>(of_one.size()));
    }
  }

  std::vector<const Parameter*> pointers() const {
    std::vector<const Parameter*> all;
    for (const Parameter& parameter : parameters_) all.push_back(&parameter);
    return all;
  }

  absl::StatusOr<Tensor> Forward(const Tensor& x, const Pass&, Saved*) override { return x; }
  absl::StatusOr<Tensor> Backward(const Tensor& dy, Saved*) override { return dy; }
  absl::Status BackwardWeights(Saved*) override { return absl::OkStatus(); }
  absl::Span<Parameter> parameters() override { return absl::MakeSpan(parameters_); }
  absl::Status ParametersChanged() override { return absl::OkStatus(); }
  absl::Status ParametersUpdated() override { return absl::OkStatus(); }
  absl::Status ClearGradients() override { return absl::OkStatus(); }

 private:
  static Tensor Of(const std::vector<float>& values) {
    Tensor tensor =
        *Tensor::Allocate(CpuDevice(), DType::kF32, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.floats().begin());
    return tensor;
  }

  std::vector<Parameter> parameters_;
};

}  // namespace thinwire
