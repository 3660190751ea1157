#include "compress/cpu/values.h"

#include <algorithm>
#include <cstring>

#include "compress/cpu/convert.h"
#include "compress/cpu/half.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/scratch.h"
#include "compress/cpu/uniform.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

TensorView FlatView(const float* values, size_t n) {
  TensorView view;
  view.data = const_cast<float*>(values);  // views do not tell readers from writers
  view.dims[0] = static_cast<int64_t>(n);
  view.rank = 1;
  return view;
}

}  // namespace

int16_t ValueExponent(const float* values, size_t n, const CodecSpec& spec) {
  return spec.values == Values::kF16 ? PreScaleFor(FloatOf(LargestMagnitude(values, n))) : 0;
}

Error WriteValues(float* values, size_t n, const CodecSpec& spec, int exponent, uint64_t random_key,
                  uint8_t* out) {
  switch (spec.values) {
    case Values::kF32:
      if (n > 0) std::memcpy(out, values, 4 * n);
      return Error{};
    case Values::kF16:
      NarrowToHalf(values, n, PowerOfTwo(exponent), out);
      return Error{};
    case Values::kBF16:
      // Only finite values are decoded: what would round to infinity stays the largest bf16.
      for (size_t i = 0; i < n; ++i) values[i] = std::clamp(values[i], -kMaxBFloat, kMaxBFloat);
      NarrowToBFloat(values, n, out);
      return Error{};
    case Values::kUniform: {
      size_t bytes = 0;
      return CpuUniformEncode(FlatView(values, n), CodecOfValues(spec), random_key, out,
                              ValueBytes(spec, n), &bytes);
    }
  }
  return Error{};
}

Error ValueReader::Open(const uint8_t* from, size_t n, const CodecSpec& spec, int exponent) {
  from_ = from;
  spec_ = spec;
  const bool is_half = spec.values == Values::kF16;
  if (exponent < (is_half ? kLeastPreScale : 0) || exponent > (is_half ? kMostPreScale : 0)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "%s: pre-scale exponent %d of %s values",
                     Name(spec.kind), exponent, Name(spec.values));
  }
  scale_ = PowerOfTwo(-exponent);
  if (spec.values != Values::kUniform) return Error{};
  static thread_local Scratch<float> memory;
  float* all = memory.Get(n);
  decoded_ = all;
  return CpuUniformDecode(from, ValueBytes(spec, n), CodecOfValues(spec), FlatView(all, n));
}

Error ValueReader::Read(size_t n, float* values) {
  switch (spec_.values) {
    case Values::kF32:
      CopyFloats(from_, n, values);
      break;
    case Values::kF16:
      WidenHalf(from_, n, scale_, values);
      break;
    case Values::kBF16:
      WidenBFloat(from_, n, values);
      break;
    case Values::kUniform:
      std::memcpy(values, decoded_, 4 * n);
      decoded_ += n;
      return Error{};  // finite, as its ranges are
  }
  from_ += ValueBytes(spec_, n);
  if (LargestMagnitude(values, n) < kInfinityBits) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "%s: a value is NaN or infinite, want finite values", Name(spec_.kind));
}

}  // namespace thinwire
