// What the tests of sparse codecs on a GPU share: calls with a support, and tensors of few values.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/cuda/twins_testing.h"
#include "compress/kernels.h"
#include "compress/layout.h"

namespace thinwire {

// A bit per element in the memory of each twin.
class TwinSupport {
 public:
  explicit TwinSupport(const std::vector<bool>& set) {
    const int64_t n = static_cast<int64_t>(set.size());
    // A bf16 tensor of four elements per word holds the words.
    const Tensor words = *Tensor::Allocate(CpuDevice(), DType::kBF16, {(n + 63) / 64 * 4});
    if (n > 0) std::memset(words.data(), 0, words.bytes());
    auto* const bits = static_cast<uint64_t*>(words.data());
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (!set[i]) continue;
      bits[i / 64] |= uint64_t{1} << (i % 64);
      ++count;
    }
    host_ = words;
    device_ = On(GpuTwin().device, words);
    views_[0] = {bits, n, count};
    views_[1] = {static_cast<const uint64_t*>(device_.data()), n, count};
  }

  const SupportView& Of(const CodecKernels* kernels) const {
    return views_[kernels == CpuTwin().kernels ? 0 : 1];
  }
  int64_t count() const { return views_[0].count; }

 private:
  Tensor host_, device_;
  SupportView views_[2];
};

// About one of `one_in` elements, in runs and apart, and always the first.
inline std::vector<bool> SomeOf(int64_t n, uint32_t one_in, uint64_t seed = 3) {
  RandomStream random(RandomKey(seed, "support"));
  std::vector<bool> set(n);
  for (int64_t i = 0; i < n; ++i) set[i] = i == 0 || random.Below(one_in) == 0;
  return set;
}

using SparseEncode = Error (CodecKernels::*)(const TensorView& x, const CodecSpec& spec,
                                             const SparseContext& context, uint8_t* payload,
                                             size_t capacity, size_t* bytes);
using SparseDecode = Error (CodecKernels::*)(const uint8_t* payload, size_t bytes,
                                             const CodecSpec& spec, const SparseContext& context,
                                             const TensorView& x);

constexpr uint64_t kSparseKey = 0x1234567890ABCDEF;

// `support`, if not null, outlives the call that is returned.
inline EncodeCall EncodeBy(SparseEncode encode, const CodecSpec& spec,
                           const TwinSupport* support = nullptr) {
  return [=](CodecKernels* kernels, const TensorView& x, uint8_t* payload, size_t capacity,
             size_t* bytes) {
    const SparseContext context = {kSparseKey,
                                   support == nullptr ? nullptr : &support->Of(kernels)};
    return (kernels->*encode)(x, spec, context, payload, capacity, bytes);
  };
}
inline DecodeCall DecodeBy(SparseDecode decode, const CodecSpec& spec,
                           const TwinSupport* support = nullptr) {
  return [=](CodecKernels* kernels, const uint8_t* payload, size_t bytes, const TensorView& x) {
    const SparseContext context = {0, support == nullptr ? nullptr : &support->Of(kernels)};
    return (kernels->*decode)(payload, bytes, spec, context, x);
  };
}

constexpr DType kTensorTypes[] = {DType::kF32, DType::kBF16};

inline std::string TraceOf(const CodecSpec& spec, const Shape& shape, DType dtype,
                           const std::string& contents) {
  return absl::StrCat(spec.ToString(), " of ", contents, " ", shape.ToString(), " ", Name(dtype));
}

// Scopes of a few elements of which the emulator would take very long: a warp for each.
inline bool HasManyTinyScopes(const Shape& shape, Scope scope) {
  return ScopesOf(shape, scope, /*group=*/0).count > 1000;
}

// `spec` with every way in which values travel.
inline std::vector<CodecSpec> EveryKindOfValues(const CodecSpec& spec) {
  std::vector<CodecSpec> specs;
  for (Values values : {Values::kF32, Values::kBF16, Values::kF16}) {
    specs.push_back(spec);
    specs.back().values = values;
  }
  for (uint32_t bits : {1, 3, 8}) {
    for (uint32_t group : {0, 100}) {
      CodecSpec uniform = spec;
      uniform.values = Values::kUniform;
      uniform.bits = bits;
      uniform.group = group;
      uniform.rounding = group > 0 ? Rounding::kStochastic : Rounding::kNearest;
      uniform.range = bits == 3 ? Range::kMaxAbs : Range::kMinMax;
      specs.push_back(uniform);
    }
  }
  return specs;
}

}  // namespace thinwire
