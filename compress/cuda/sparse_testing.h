// Helpers for tests of sparse codecs on a GPU: supports, and the ways in which kept values travel.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compress/cuda/twins_testing.h"
#include "compress/layout.h"

namespace thinwire {

// Returns a set of about one in `one_in` elements, in stretches and apart; always with the first.
inline std::vector<bool> SomeOf(int64_t n, uint32_t one_in, uint64_t seed = 3) {
  RandomStream random(RandomKey(seed, "support"));
  std::vector<bool> set(n);
  for (int64_t i = 0; i < n; ++i) set[i] = i == 0 || random.Below(one_in) == 0;
  return set;
}

constexpr Scope kScopes[] = {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken};

// Returns true if a shape has many scopes of few elements. The emulator takes very long for these,
// because it simulates a warp for each.
inline bool HasManyTinyScopes(const Shape& shape, Scope scope) {
  return ScopesOf(shape, scope, /*group=*/0).count > 1000;
}

// Returns `spec` with each of the ways in which values travel.
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
  for (uint32_t bits : {1, 2, 4}) {
    for (uint32_t group : {0, 100}) {
      CodecSpec means = spec;
      means.values = Values::kMeans;
      means.bits = bits;
      means.group = group;
      specs.push_back(means);
    }
  }
  return specs;
}

}  // namespace thinwire
