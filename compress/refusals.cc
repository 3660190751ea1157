#include "compress/refusals.h"

namespace thinwire {

Error CheckCapacity(const char* codec, size_t capacity, size_t want) {
  if (capacity >= want) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument, "%s: payload memory of %zu bytes, want %zu",
                   codec, capacity, want);
}

Error CheckPayloadBytes(const char* codec, size_t bytes, size_t want) {
  if (bytes == want) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument, "%s: payload of %zu bytes, want %zu", codec,
                   bytes, want);
}

Error CheckPreScale(const char* codec, int exponent, int least, int most) {
  if (exponent >= least && exponent <= most) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument, "%s: pre-scale exponent %d, want %d to %d",
                   codec, exponent, least, most);
}

Error NonFiniteElement(const char* codec, int64_t element, float value) {
  return MakeError(absl::StatusCode::kOutOfRange, "%s: element %lld is %g, want finite values",
                   codec, static_cast<long long>(element), static_cast<double>(value));
}

Error CheckCompared(int64_t x_elements, int64_t y_elements) {
  if (x_elements == y_elements) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "compare: tensors of %lld and %lld elements, want equal shapes",
                   static_cast<long long>(x_elements), static_cast<long long>(y_elements));
}

Error CheckLargestFp8(uint32_t largest, int exponent, uint32_t most) {
  if (largest <= most) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "fp8: magnitude code 0x%02x with exponent %d, want at most 0x%02x", largest,
                   exponent, most);
}

Error AbsmaxError(int64_t block, float absmax) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "blockwise8: absmax of block %lld is %g, want a finite number, not negative",
                   static_cast<long long>(block), static_cast<double>(absmax));
}

Error StepError(int64_t scope, float step) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "ecsq: step of scope %lld is %g, want 0 or a normal number",
                   static_cast<long long>(scope), static_cast<double>(step));
}

Error EscapeError(int64_t element, int32_t code) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "ecsq: code %d of element %lld behind the bytes, want one that has no byte",
                   code, static_cast<long long>(element));
}

}  // namespace thinwire
