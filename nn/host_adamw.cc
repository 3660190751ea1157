#include "nn/host_adamw.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "nn/adamw_factors.h"
#include "nn/moment_codes.h"

namespace thinwire {
namespace {

// Elements that are on the host at a time: whole blocks of codes.
constexpr int64_t kElementsAtOnce = int64_t{1} << 20;
static_assert(kElementsAtOnce % kMomentBlock == 0);

// Returns the means of elements from `begin` on, the first of a block.
AdamWParameter MeansFrom(int64_t begin, const AdamWParameter& parameter) {
  AdamWParameter part;
  if (!parameter.is_coded()) {
    part.mean = parameter.mean + begin;
    part.square = parameter.square + begin;
    return part;
  }
  const int64_t block = begin / kMomentBlock;
  const auto from = [&](const CodedMean& mean) {
    return CodedMean{mean.scales + block, mean.codes + begin};
  };
  part.coded_mean = from(parameter.coded_mean);
  part.coded_square = from(parameter.coded_square);
  return part;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostAdamW>> HostAdamW::New(Device* device, Ops* ops, Ops* host_ops) {
  std::unique_ptr<HostAdamW> made(new HostAdamW(device, ops, host_ops));
  for (Tensor* tensor : {&made->gradients_, &made->steps_}) {
    ASSIGN_OR_RETURN(*tensor, Tensor::Allocate(device->host(), DType::kF32, {kElementsAtOnce}));
  }
  return made;
}

absl::Status HostAdamW::Update(const AdamWUpdate& update) {
  for (int64_t i = 0; i < update.count; ++i) {
    RETURN_IF_ERROR(Update(update, update.parameters[i]));
  }
  return absl::OkStatus();
}

absl::Status HostAdamW::Update(const AdamWUpdate& update, const AdamWParameter& parameter) {
  for (int64_t begin = 0; begin < parameter.n; begin += kElementsAtOnce) {
    RETURN_IF_ERROR(
        ToSteps(update, parameter, begin, std::min(kElementsAtOnce, parameter.n - begin)));
  }
  RETURN_IF_ERROR(ToStatus(ops_->Combine({ShrinkOf(update, parameter), parameter.value, 1,
                                          parameter.gradient, parameter.value, parameter.n})));
  return ToStatus(ops_->Zero(parameter.gradient, parameter.n));
}

absl::Status HostAdamW::ToSteps(const AdamWUpdate& update, const AdamWParameter& parameter,
                                int64_t begin, int64_t n) {
  const size_t bytes = static_cast<size_t>(n) * sizeof(float);
  float* const gradients = gradients_.floats().data();
  float* const steps = steps_.floats().data();
  RETURN_IF_ERROR(ToStatus(device_->CopyToHost(gradients, parameter.gradient + begin, bytes)));
  // An update of -0 that does not decay is -0 - step = -step in every bit, whatever the step.
  std::fill_n(steps, n, -0.0f);
  AdamWParameter part = MeansFrom(begin, parameter);
  part.value = steps;
  part.gradient = gradients;
  part.n = n;
  AdamWUpdate one = update;
  one.parameters = &part;
  one.count = 1;
  RETURN_IF_ERROR(ToStatus(host_ops_->AdamW(one)));
  return ToStatus(device_->CopyFromHost(parameter.gradient + begin, steps, bytes));
}

}  // namespace thinwire
