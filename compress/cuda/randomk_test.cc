#include <gtest/gtest.h>

#include "compress/cuda/sparse_testing.h"

namespace thinwire {
namespace {

CodecSpec RandomK(double ratio, Scope scope = Scope::kTensor, bool unbiased = false) {
  CodecSpec spec;
  spec.kind = CodecKind::kRandomK;
  spec.ratio = ratio;
  spec.scope = scope;
  spec.unbiased = unbiased;
  return spec;
}

TEST(CudaRandomKTest, EveryShapeScopeAndRatioHasTheCpusBytes) {
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{2, 3}, Shape{3, 17},
                             Shape{2, 3, 5, 33}, Shape{2, 1500}, Shape{20011, 2}, Shape{5, 9001}}) {
    const NamedValues normal{"normal", NormalValues(shape.elements())};
    for (Scope scope : kScopes) {
      if (HasManyTinyScopes(shape, scope)) continue;
      for (double ratio : {0.001, 0.1, 1.0}) {
        for (bool unbiased : {false, true}) {
          ExpectTwins(RandomK(ratio, scope, unbiased), shape, normal);
        }
      }
    }
  }
}

TEST(CudaRandomKTest, EveryKindOfValuesHasTheCpusBytes) {
  for (const NamedValues& c : FiniteCases(2000)) {
    for (const CodecSpec& spec : EveryKindOfValues(RandomK(0.2, Scope::kSample, true))) {
      ExpectTwins(spec, {2, 1000}, c);
    }
  }
}

TEST(CudaRandomKTest, OnlyWhatHasSupportDraws) {
  for (const Shape& shape :
       {Shape{1}, Shape{7, 11, 13}, Shape{2, 9000}, Shape{100, 3}, Shape{4, 9001}}) {
    for (uint32_t one_in : {1, 2, 30}) {
      const TwinSupport support(SomeOf(shape.elements(), one_in));
      for (Scope scope : kScopes) {
        if (HasManyTinyScopes(shape, scope)) continue;
        for (bool unbiased : {false, true}) {
          CodecSpec spec = RandomK(0.2, scope, unbiased);
          spec.support = Support::kReceivedNonzero;
          ExpectTwins(spec, shape, {"normal", NormalValues(shape.elements())}, &support);
        }
      }
    }
  }
}

TEST(CudaRandomKTest, NaNInfinityAndOverflowAreRefused) {
  const TwinSupport support(SomeOf(3000, 2));
  for (const NamedValues& c : ExtremeCases(3000)) {
    for (bool unbiased : {false, true}) {
      CodecSpec spec = RandomK(0.9, Scope::kTensor, unbiased);
      ExpectTwins(spec, {3000}, c);
      spec.support = Support::kReceivedNonzero;
      ExpectTwins(spec, {3000}, c, &support);
    }
  }
  const TwinSupport second({false, true});
  CodecSpec supported = RandomK(1);
  supported.support = Support::kReceivedNonzero;
  ExpectTwins(supported, {2}, {"dropped NaN", {NAN, INFINITY}}, &second);
  const std::vector<float> large(100, 1e38f);
  ExpectTwins(RandomK(0.1, Scope::kTensor, true), {100}, {"large", large});
}

TEST(CudaRandomKTest, TooLittleMemoryIsRefused) {
  const Tensor x = HostTensor({100}, DType::kF32, NormalValues(100));
  for (size_t capacity : {0, 7, 8, 47}) ExpectSameEncoding(x, capacity, EncodeBy(RandomK(0.1)));
}

TEST(CudaRandomKTest, CutAndDamagedPayloadsGetTheCpusVerdict) {
  const TwinSupport support(SomeOf(30, 2));
  for (const CodecSpec& of_values : EveryKindOfValues(RandomK(0.3, Scope::kToken))) {
    for (bool has_support : {false, true}) {
      CodecSpec spec = of_values;
      if (has_support && spec.values == Values::kUniform) continue;
      if (has_support) spec.support = Support::kReceivedNonzero;
      const TwinSupport* const given = has_support ? &support : nullptr;
      const Shape shape = {3, 10};
      SCOPED_TRACE(spec.ToString());
      const auto payload = ExpectTwins(spec, shape, {"normal", NormalValues(30)}, given);
      ExpectSameVerdictsWhenCut(payload, shape, DType::kF32, DecodeBy(spec, given));
      ExpectSameVerdictsWhenDamaged(payload, shape, DType::kBF16, DecodeBy(spec, given));
    }
  }
}

}  // namespace
}  // namespace thinwire
