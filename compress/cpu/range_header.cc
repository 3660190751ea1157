#include "compress/cpu/range_header.h"

#include "compress/bytes.h"
#include "compress/refusals.h"

namespace thinwire {

Error RangeOverflow(const MinMax& m) {
  return MakeError(kRefused, "uniform: values from %g to %g, want a range that fp32 holds",
                   static_cast<double>(m.min), static_cast<double>(m.max));
}

DecodeLine ReadRange(const CodecSpec& spec, const uint8_t* header, int64_t scope) {
  switch (spec.range) {
    case Range::kMinMax:
      return {LoadAs<float>(header + 8 * scope), LoadAs<float>(header + 8 * scope + 4)};
    case Range::kMaxAbs:
      return {0, LoadAs<float>(header + 4 * scope)};
    case Range::kFixedPoint:
      return {0,
              FixedPointRange(LoadAs<uint16_t>(header + 2 + 2 * scope), LoadAs<int16_t>(header))};
  }
  return {};
}

Error CheckExponent(const CodecSpec& spec, const uint8_t* header) {
  if (spec.range != Range::kFixedPoint) return Error{};
  return CheckPreScale("uniform", LoadAs<int16_t>(header), kLeastPreScale, kMostPreScale);
}

Error CheckRanges(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header) {
  RETURN_ERROR(CheckExponent(spec, header));
  for (int64_t s = 0; s < scopes.count; ++s) {
    const bool is_half = spec.range != Range::kFixedPoint ||
                         LoadAs<uint16_t>(header + 2 + 2 * s) < 0x7C00;  // finite, no sign
    if (!is_half || !IsUsable(ReadRange(spec, header, s))) {
      return MakeError(kRefused, "uniform: scope %lld has no finite range of at least 0",
                       static_cast<long long>(s));
    }
  }
  return Error{};
}

Error CheckLastByte(uint8_t last_byte, const CodecSpec& spec, int64_t total) {
  const uint64_t bits = uint64_t{spec.bits} * total;
  if (bits % 8 == 0 || (last_byte >> (bits % 8)) == 0) return Error{};
  return MakeError(kRefused, "%s: unused bits of the last byte 0x%02x are set", Name(spec.kind),
                   last_byte);
}

bool IsConstant(const CodecSpec& spec, const Scopes& scopes, const uint8_t* payload, size_t bytes) {
  return spec.range == Range::kFixedPoint && scopes.count > 0 && bytes == kConstantTensorBytes &&
         LoadAs<int16_t>(payload) == kConstantTensor;
}

Error ReadConstant(const uint8_t* payload, float* value) {
  *value = LoadAs<float>(payload + 2);
  if (IsFinite(*value)) return Error{};
  return MakeError(kRefused, "uniform: constant %g, want a finite value",
                   static_cast<double>(*value));
}

void WriteConstant(float value, uint8_t* payload) {
  StoreAs(kConstantTensor, payload);
  StoreAs(value, payload + 2);
}

}  // namespace thinwire
