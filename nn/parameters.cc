#include "nn/parameters.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Initial values of a weight or bias are uniform in [-Bound, Bound).
float Bound(const ParameterSpec& spec) {
  if (spec.init == ParameterSpec::Init::kXavierUniform) {
    return std::sqrt(6.0f / static_cast<float>(spec.fan_in + spec.fan_out));
  }
  return 1.0f / std::sqrt(static_cast<float>(spec.fan_in));
}

std::vector<float> InitialValues(const ParameterSpec& spec, uint64_t seed) {
  std::vector<float> values(spec.shape.elements());
  switch (spec.init) {
    case ParameterSpec::Init::kZeros:
      break;
    case ParameterSpec::Init::kOnes:
      std::fill(values.begin(), values.end(), 1.0f);
      break;
    case ParameterSpec::Init::kUniformFanIn:
    case ParameterSpec::Init::kXavierUniform: {
      const float bound = Bound(spec);
      RandomStream random(RandomKey(seed, spec.name));
      for (float& value : values) value = (2 * random.NextFloat() - 1) * bound;
    }
  }
  return values;
}

absl::StatusOr<Tensor> OnDevice(const std::vector<float>& values, const Shape& shape,
                                Device* device) {
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(device, DType::kF32, shape));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(tensor.data(), values.data(), tensor.bytes())));
  return tensor;
}

}  // namespace

absl::StatusOr<std::vector<Parameter>> InitialParameters(absl::Span<const BlockSpec> blocks,
                                                         uint64_t seed, Device* device) {
  std::vector<Parameter> parameters;
  for (const BlockSpec& block : blocks) {
    for (const ParameterSpec& spec : Parameters(block)) {
      Parameter parameter;
      parameter.spec = spec;
      ASSIGN_OR_RETURN(parameter.value, OnDevice(InitialValues(spec, seed), spec.shape, device));
      if (spec.trainable) {
        const std::vector<float> zeros(spec.shape.elements());
        ASSIGN_OR_RETURN(parameter.gradient, OnDevice(zeros, spec.shape, device));
      }
      parameters.push_back(std::move(parameter));
    }
  }
  return parameters;
}

Parameter* FindParameter(absl::Span<Parameter> parameters, const std::string& name) {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(),
                   [&](const Parameter& parameter) { return parameter.spec.name == name; });
  assert(found != parameters.end());
  return &*found;
}

}  // namespace thinwire
