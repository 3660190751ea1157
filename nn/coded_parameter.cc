#include "nn/coded_parameter.h"

#include <memory>
#include <utility>

#include "base/annotated.h"
#include "base/status.h"
#include "nn/weight_codes.h"

namespace thinwire {
namespace {

int64_t ColumnsOf(const Parameter& parameter) {
  return parameter.spec.shape.elements() / parameter.spec.shape[0];
}

// Memory of rows of a parameter.
struct RowsPlace {
  uint8_t* codes = nullptr;
  uint8_t* scales = nullptr;
  size_t code_bytes = 0, scale_bytes = 0;
};

RowsPlace PlaceOf(const Parameter& parameter, int64_t first_row, size_t elements) {
  const WeightFormat format = parameter.spec.format;
  const int64_t columns = ColumnsOf(parameter), n = static_cast<int64_t>(elements);
  RowsPlace place;
  place.codes =
      static_cast<uint8_t*>(parameter.codes->data()) + CodeBytes(format, first_row * columns);
  place.code_bytes = static_cast<size_t>(CodeBytes(format, n));
  place.scale_bytes = sizeof(float) * static_cast<size_t>(NumScales(format, n / columns, columns));
  if (place.scale_bytes == 0) return place;
  place.scales = static_cast<uint8_t*>(parameter.scales->data()) +
                 sizeof(float) * NumScales(format, first_row, columns);
  return place;
}

absl::StatusOr<std::shared_ptr<Buffer>> CopiedToHost(const Buffer& memory, size_t bytes) {
  Device* const device = memory.device();
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> copy, Buffer::Allocate(device->host(), bytes));
  RETURN_IF_ERROR(ToStatus(device->CopyToHost(copy->data(), memory.data(), bytes)));
  return copy;
}

}  // namespace

absl::Status AllocateCodes(Parameter* parameter, Device* device) {
  const Shape& shape = parameter->spec.shape;
  const WeightFormat format = parameter->spec.format;
  ASSIGN_OR_RETURN(
      parameter->codes,
      Buffer::Allocate(device, static_cast<size_t>(CodeBytes(format, shape.elements()))));
  const int64_t scales = NumScales(format, shape[0], ColumnsOf(*parameter));
  if (scales == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(parameter->scales,
                   Buffer::Allocate(device, sizeof(float) * static_cast<size_t>(scales)));
  return absl::OkStatus();
}

absl::StatusOr<Parameter> CopiedToHost(const Parameter& parameter) {
  Parameter copy;
  copy.spec = parameter.spec;
  if (!parameter.is_coded()) {
    const Tensor& value = parameter.value;
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> values, CopiedToHost(*value.buffer(), value.bytes()));
    copy.value = Tensor(std::move(values), value.dtype(), value.shape());
    return copy;
  }
  ASSIGN_OR_RETURN(copy.codes, CopiedToHost(*parameter.codes, parameter.codes->bytes()));
  if (parameter.scales == nullptr) return copy;
  ASSIGN_OR_RETURN(copy.scales, CopiedToHost(*parameter.scales, parameter.scales->bytes()));
  return copy;
}

absl::Status WriteRows(const Parameter& parameter, int64_t first_row,
                       absl::Span<const float> values) {
  const int64_t columns = ColumnsOf(parameter);
  if (!parameter.is_coded()) {
    return ToStatus(
        parameter.value.device()->CopyFromHost(Floats(parameter.value) + first_row * columns,
                                               values.data(), values.size() * sizeof(float)));
  }
  ASSIGN_OR_RETURN(const WeightCodes codes,
                   Annotated(Quantized(parameter.spec.format, columns, values),
                             "parameter " + parameter.spec.name));
  const RowsPlace place = PlaceOf(parameter, first_row, values.size());
  Device* const device = parameter.codes->device();
  RETURN_IF_ERROR(
      ToStatus(device->CopyFromHost(place.codes, codes.codes.data(), place.code_bytes)));
  if (place.scale_bytes == 0) return absl::OkStatus();
  return ToStatus(device->CopyFromHost(place.scales, codes.scales.data(), place.scale_bytes));
}

absl::Status ReadRows(const Parameter& parameter, int64_t first_row, absl::Span<float> values) {
  const int64_t columns = ColumnsOf(parameter);
  if (!parameter.is_coded()) {
    return ToStatus(parameter.value.device()->CopyToHost(
        values.data(), Floats(parameter.value) + first_row * columns,
        values.size() * sizeof(float)));
  }
  const RowsPlace place = PlaceOf(parameter, first_row, values.size());
  Device* const device = parameter.codes->device();
  WeightCodes codes;
  codes.codes.resize(place.code_bytes);
  codes.scales.resize(place.scale_bytes / sizeof(float));
  RETURN_IF_ERROR(ToStatus(device->CopyToHost(codes.codes.data(), place.codes, place.code_bytes)));
  if (place.scale_bytes > 0) {
    RETURN_IF_ERROR(
        ToStatus(device->CopyToHost(codes.scales.data(), place.scales, place.scale_bytes)));
  }
  Expand(parameter.spec.format, columns, codes, values);
  return absl::OkStatus();
}

}  // namespace thinwire
