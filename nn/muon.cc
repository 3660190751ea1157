#include "nn/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

// Returns the matrices that a weight consists of; their values are in `data`.
std::vector<Matrix> MatricesOf(const ParameterSpec& spec, float* data) {
  const int64_t columns = spec.shape.elements() / spec.shape[0];
  if (spec.parts.empty()) return {{data, spec.shape[0], columns}};
  std::vector<Matrix> matrices;
  for (const FilePart& part : spec.parts) {
    matrices.push_back({data, part.rows, columns});
    data += part.rows * columns;
  }
  return matrices;
}

}  // namespace

absl::Status Muon::Step(const MuonRates& rates, const Parameter& parameter,
                        const Tensor& momentum) {
  const int64_t n = parameter.value.elements();
  float* const g = Floats(parameter.gradient);
  float* const m = Floats(momentum);
  const auto beta = static_cast<float>(rates.momentum);
  const auto scale = static_cast<float>(rates.gradient_scale);
  ASSIGN_OR_RETURN(const Tensor update,
                   Tensor::Allocate(device_, DType::kF32, parameter.value.shape()));
  float* const u = Floats(update);
  RETURN_IF_ERROR(ToStatus(ops_->Combine({beta, m, scale, g, m, n})));
  RETURN_IF_ERROR(ToStatus(rates.nesterov ? ops_->Combine({scale, g, beta, m, u, n})
                                          : ops_->Combine({1, m, 0, nullptr, u, n})));
  RETURN_IF_ERROR(ToStatus(ops_->Zero(g, n)));
  const std::vector<Matrix> values = MatricesOf(parameter.spec, Floats(parameter.value));
  const std::vector<Matrix> updates = MatricesOf(parameter.spec, u);
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(newton_schulz_.Orthogonalise(updates[i], updates[i]));
    const double ratio =
        static_cast<double>(values[i].rows) / static_cast<double>(values[i].columns);
    const auto rate = static_cast<float>(-rates.lr * std::sqrt(std::max(1.0, ratio)));
    const auto shrink = static_cast<float>(1 - rates.lr * rates.weight_decay);
    RETURN_IF_ERROR(ToStatus(ops_->Combine(
        {shrink, values[i].data, rate, updates[i].data, values[i].data, values[i].elements()})));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
