#include "nn/parameters.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "nn/coded_parameter.h"

namespace thinwire {
namespace {

// Returns the bound of a weight's or bias's initial values, which are uniform in [-bound, bound).
float Bound(const ParameterSpec& spec) {
  if (spec.init == ParameterSpec::Init::kXavierUniform) {
    return std::sqrt(6.0f / static_cast<float>(spec.fan_in + spec.fan_out));
  }
  return 1.0f / std::sqrt(static_cast<float>(spec.fan_in));
}

// Fills in normal values, two from two uniform ones (Box & Muller, 1958).
void FillNormal(double deviation, uint64_t key, std::vector<float>* values) {
  constexpr double kTurn = 6.283185307179586;
  RandomStream random(key);
  for (size_t i = 0; i < values->size(); i += 2) {
    const double u = 1 - static_cast<double>(random.NextFloat());  // not 0
    const double angle = kTurn * static_cast<double>(random.NextFloat());
    const double radius = deviation * std::sqrt(-2 * std::log(u));
    (*values)[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values->size()) (*values)[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Makes the rows orthonormal by Gram and Schmidt's method. It runs twice, for rows that are nearly
// in the span of those before them.
void MakeRowsOrthonormal(const Shape& shape, std::vector<float>* values) {
  const int64_t columns = shape[1];
  std::vector<double> rows(values->begin(), values->end());
  for (int64_t i = 0; i < shape[0]; ++i) {
    double* const row = rows.data() + i * columns;
    for (int64_t j = 0; j < 2 * i; ++j) {
      const double* const other = rows.data() + j % i * columns;
      const double along = Dot(row, other, columns);
      for (int64_t k = 0; k < columns; ++k) row[k] -= along * other[k];
    }
    const double length = std::sqrt(Dot(row, row, columns));
    for (int64_t k = 0; k < columns; ++k) row[k] /= length;
  }
  std::copy(rows.begin(), rows.end(), values->begin());
}

std::vector<float> InitialValues(const ParameterSpec& spec, uint64_t seed);

// Returns the elements of the whole parameter's initial values that a slice has.
std::vector<float> InitialSlice(const ParameterSpec& spec, uint64_t seed) {
  ParameterSpec whole = spec;
  whole.name = spec.slice.whole;
  whole.shape = spec.slice.shape;
  whole.slice = {};
  const std::vector<float> values = InitialValues(whole, seed);
  const bool is_matrix = whole.shape.rank() == 2;
  const int64_t row_elements = is_matrix ? whole.shape[1] : 1;
  const IndexRange columns = is_matrix ? spec.slice.columns : IndexRange{0, 1};
  std::vector<float> slice;
  for (const IndexRange& rows : spec.slice.rows) {
    for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
      const auto begin = values.begin() + row * row_elements + columns.first;
      slice.insert(slice.end(), begin, begin + columns.count);
    }
  }
  return slice;
}

std::vector<float> InitialValues(const ParameterSpec& spec, uint64_t seed) {
  if (!spec.slice.whole.empty()) return InitialSlice(spec, seed);
  std::vector<float> values(spec.shape.elements());
  const uint64_t key = RandomKey(seed, spec.tied_to.empty() ? spec.name : spec.tied_to);
  switch (spec.init) {
    case ParameterSpec::Init::kZeros:
      break;
    case ParameterSpec::Init::kOnes:
      std::fill(values.begin(), values.end(), 1.0f);
      break;
    case ParameterSpec::Init::kUniformFanIn:
    case ParameterSpec::Init::kXavierUniform: {
      const float bound = Bound(spec);
      RandomStream random(key);
      for (float& value : values) value = (2 * random.NextFloat() - 1) * bound;
      break;
    }
    case ParameterSpec::Init::kNormal:
      FillNormal(spec.deviation, key, &values);
      break;
    case ParameterSpec::Init::kOrthonormal:
      FillNormal(1, key, &values);
      MakeRowsOrthonormal(spec.shape, &values);
      break;
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
                                                         std::optional<uint64_t> seed,
                                                         Device* device) {
  std::vector<Parameter> parameters;
  for (const BlockSpec& block : blocks) {
    for (const ParameterSpec& spec : Parameters(block)) {
      Parameter parameter;
      parameter.spec = spec;
      const std::vector<float> values =
          seed ? InitialValues(spec, *seed) : std::vector<float>(spec.shape.elements());
      if (spec.format == WeightFormat::kFP32) {
        ASSIGN_OR_RETURN(parameter.value, OnDevice(values, spec.shape, device));
      } else {
        RETURN_IF_ERROR(AllocateCodes(&parameter, device));
        RETURN_IF_ERROR(WriteRows(parameter, /*first_row=*/0, values));
      }
      if (spec.is_trained()) {
        const std::vector<float> zeros(spec.shape.elements());
        ASSIGN_OR_RETURN(parameter.gradient, OnDevice(zeros, spec.shape, device));
        for (int slice = spec.slices.first; slice < spec.slices.end; ++slice) {
          ASSIGN_OR_RETURN(parameter.of_slices.emplace_back(), OnDevice(zeros, spec.shape, device));
        }
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

absl::Status AddTiedGradients(const Parameter& embedding, const Parameter& head, Ops* ops) {
  const TensorView sum = embedding.gradient.view();
  RETURN_IF_ERROR(ToStatus(ops->Add(sum, head.gradient.view(), sum)));
  if (head.follows) {
    return ToStatus(ops->Zero(Floats(head.gradient), head.gradient.elements()));
  }
  return ToStatus(ops->Convert(sum, head.gradient.view()));
}

}  // namespace thinwire
