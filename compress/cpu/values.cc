#include "compress/cpu/values.h"

#include <algorithm>
#include <cstring>

#include "compress/cpu/codecs.h"
#include "compress/cpu/entries_header.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/mean_values.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

TensorView FlatView(const float* values, size_t n) {
  return ViewOf(values, DType::kF32, {static_cast<int64_t>(n)});
}

// Writes values as fixed-width numbers.
void WriteNumbers(float* values, size_t n, const CodecSpec& spec, float scale, uint8_t* out) {
  switch (spec.values) {
    case Values::kF32:
      if (n > 0) std::memcpy(out, values, 4 * n);
      return;
    case Values::kF16:
      NarrowToHalf(values, n, scale, out);
      return;
    case Values::kBF16:
      // Only finite values are decoded: what would round to infinity becomes the largest bf16.
      for (size_t i = 0; i < n; ++i) values[i] = std::clamp(values[i], -kMaxBFloat, kMaxBFloat);
      NarrowToBFloat(values, n, out);
      return;
    case Values::kUniform:
    case Values::kMeans:
      return;
  }
}

// Returns whether values are read all at once.
bool IsCoded(const CodecSpec& spec) {
  return spec.values == Values::kUniform || spec.values == Values::kMeans;
}

}  // namespace

int16_t ValueExponent(const float* values, size_t n, const CodecSpec& spec, int threads) {
  if (spec.values != Values::kF16) return 0;
  return PreScaleFor(FloatOf(LargestMagnitude(values, n, threads)));
}

Error WriteValues(float* values, size_t n, const CodecSpec& spec, int exponent, uint64_t random_key,
                  int threads, uint8_t* out) {
  if (spec.values == Values::kUniform) {
    size_t bytes = 0;
    KernelContext context;
    context.random_key = random_key;
    return CpuUniformEncode(CodecOfValues(spec), FlatView(values, n), context,
                            {out, ValueBytes(spec, n), &bytes}, threads);
  }
  if (spec.values == Values::kMeans) {
    WriteMeanValues(values, n, spec, threads, out);
    return Error{};
  }
  ForEachPart(Parts(n, threads), [&](int, int64_t begin, int64_t end) {
    WriteNumbers(values + begin, end - begin, spec, PowerOfTwo(exponent),
                 out + ValueBytes(spec, begin));
  });
  return Error{};
}

Error ValueReader::Open(const uint8_t* from, size_t n, const CodecSpec& spec, int exponent,
                        int threads) {
  from_ = from;
  spec_ = spec;
  RETURN_ERROR(CheckValueExponent(spec, exponent));
  scale_ = PowerOfTwo(-exponent);
  if (!IsCoded(spec)) return Error{};
  static thread_local Scratch<float> memory;
  float* all = memory.Get(n);
  decoded_ = all;
  if (spec.values == Values::kMeans) return ReadMeanValues(from, n, spec, threads, all);
  return CpuUniformDecode({from, ValueBytes(spec, n)}, CodecOfValues(spec), KernelContext{},
                          FlatView(all, n), threads);
}

void ValueReader::Skip(size_t n) {
  if (IsCoded(spec_)) {
    decoded_ += n;
  } else {
    from_ += ValueBytes(spec_, n);
  }
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
      Skip(n);
      return Error{};  // finite, as its ranges are
    case Values::kMeans:
      std::memcpy(values, decoded_, 4 * n);
      break;
  }
  Skip(n);
  if (LargestMagnitude(values, n) < kInfinityBits) return Error{};
  return MakeError(kRefused, "%s: a value is NaN or infinite, want finite values",
                   Name(spec_.kind));
}

}  // namespace thinwire
