#include "compress/refusals.h"

namespace thinwire {

Error CheckCapacity(const char* codec, size_t capacity, size_t want) {
  if (capacity >= want) return Error{};
  return MakeError(kRefused, "%s: payload memory of %zu bytes, want %zu", codec, capacity, want);
}

Error CheckPayloadBytes(const char* codec, size_t bytes, size_t want) {
  if (bytes == want) return Error{};
  return MakeError(kRefused, "%s: payload of %zu bytes, want %zu", codec, bytes, want);
}

Error CheckPreScale(const char* codec, int exponent, int least, int most) {
  if (exponent >= least && exponent <= most) return Error{};
  return MakeError(kRefused, "%s: pre-scale exponent %d, want %d to %d", codec, exponent, least,
                   most);
}

Error NonFiniteElement(const char* codec, int64_t element, float value) {
  return MakeError(absl::StatusCode::kOutOfRange, "%s: element %lld is %g, want finite values",
                   codec, static_cast<long long>(element), static_cast<double>(value));
}

Error CheckCompared(int64_t x_elements, int64_t y_elements) {
  if (x_elements == y_elements) return Error{};
  return MakeError(kRefused, "compare: tensors of %lld and %lld elements, want equal shapes",
                   static_cast<long long>(x_elements), static_cast<long long>(y_elements));
}

}  // namespace thinwire
