// Tests of gradients that are sent only where the received activation is not zero.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/codecs/stack.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Supported(CodecKind kind) {
  CodecSpec spec;
  spec.kind = kind;
  spec.support = Support::kReceivedNonzero;
  return spec;
}

CodecSpec Shared(Values values) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.indices = Indices::kShared;
  spec.values = values;
  spec.bits = 4;
  return spec;
}

// Returns an activation of which about this share is not zero.
std::vector<float> Activation(int64_t n, double share, uint64_t seed) {
  RandomStream random(RandomKey(seed, "activation"));
  std::vector<float> values(n);
  for (float& value : values) value = random.NextFloat() < share ? 1.0f : 0.0f;
  return values;
}

std::vector<float> SupportedOf(const std::vector<float>& x, const std::vector<float>& activation) {
  std::vector<float> compact;
  for (size_t i = 0; i < x.size(); ++i) {
    if (activation[i] != 0) compact.push_back(x[i]);
  }
  return compact;
}

std::vector<float> Scattered(const std::vector<float>& compact,
                             const std::vector<float>& activation) {
  std::vector<float> x(activation.size());
  size_t next = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (activation[i] != 0) x[i] = compact[next++];
  }
  return x;
}

constexpr double kShares[] = {0, 0.01, 0.3, 0.5, 0.9, 1};
constexpr int64_t kSizes[] = {0,  1,  2,  3,   4,    5,    7,    8,    15,   16,   17,
                              63, 64, 65, 127, 1000, 4095, 4096, 4097, 4100, 20001};

// Tests that a number too small for any normal one is not zero, and that -0 is.
TEST(SupportMapTest, KnowsWhatIsNotZeroOnEverySimdTarget) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (int64_t n : kSizes) {
      std::vector<float> x = Activation(n, 0.5, n);
      for (int64_t i = 0; i < n; ++i) {
        if (x[i] == 0) x[i] = i % 2 != 0 ? -0.0f : 0.0f;
        if (x[i] != 0 && i % 3 == 0) x[i] = i % 2 != 0 ? 1e-45f : NAN;
      }
      const SupportMap support = SupportOfValues(x);
      int64_t count = 0;
      for (int64_t i = 0; i < 64 * ((n + 63) / 64); ++i) {
        const bool wanted = i < n && x[i] != 0;
        ASSERT_EQ(support.view().words[i / 64] >> (i % 64) & 1, wanted) << n << " " << i;
        count += wanted;
      }
      EXPECT_EQ(support.count(), count);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(CompactTest, GathersAndExpandScattersOnEverySimdTarget) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (int64_t n : kSizes) {
      for (double share : kShares) {
        std::vector<float> x = RandomValues(n, 2);
        for (float& value : x) value = std::round(value * 64) / 64;  // fits bf16's eight bits
        const std::vector<float> activation = Activation(n, share, n);
        const SupportMap support = SupportOfValues(activation);
        for (const Tensor& from : {TensorOf(x), BFloatTensorOf({n}, x)}) {
          const Tensor compact = *Tensor::Allocate(CpuDevice(), from.dtype(), {support.count()});
          CodecKernels* kernels = CpuCodecKernels();
          ASSERT_TRUE(kernels->Compact(from.view(), support.view(), compact.view()).ok());
          EXPECT_EQ(FloatsOf(compact), SupportedOf(x, activation)) << n << " " << share;
          Tensor y = *Tensor::Allocate(CpuDevice(), from.dtype(), {n});
          if (n > 0) std::memset(y.data(), 0x3F, y.bytes());
          ASSERT_TRUE(kernels->Expand(compact.view(), support.view(), y.view()).ok());
          EXPECT_EQ(FloatsOf(y), Scattered(SupportedOf(x, activation), activation));
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(SharedIndicesTest, SendTheValuesOfTheSupportAndNothingElse) {
  const SupportMap support = SupportOfValues({0, 3, 0, 1, -2, 0});
  const Tensor x = TensorOf({7, 1, 7, 0, -2.5f, 7});
  const auto payload = *EncodeToBytes(Shared(Values::kF32), x, 1, &support);
  EXPECT_EQ(payload.size(), 12u);
  EXPECT_THAT(FloatsOf(*DecodeFromBytes(Shared(Values::kF32), payload, {6}, DType::kF32, &support)),
              ElementsAre(0, 1, 0, 0, -2.5f, 0));
}

// Tests that the payload, and what arrives, are those of another codec for the supported entries
// alone.
void ExpectAsInner(const CodecSpec& spec, const CodecSpec& inner, const std::vector<float>& x,
                   const std::vector<float>& activation) {
  const SupportMap support = SupportOfValues(activation);
  const Tensor compact = TensorOf(SupportedOf(x, activation));
  const auto payload = *EncodeToBytes(spec, TensorOf(x), 5, &support);
  EXPECT_EQ(payload, *EncodeToBytes(inner, compact, 5)) << spec.ToString();
  const int64_t n = x.size();
  EXPECT_EQ(FloatsOf(*DecodeFromBytes(spec, payload, {n}, DType::kF32, &support)),
            Scattered(*RoundTrip(inner, compact, 5), activation))
      << spec.ToString();
  EXPECT_LE(payload.size(), CodecOf(spec)->MaxPayloadBytes({n}, DType::kF32)) << spec.ToString();
}

std::vector<CodecSpec> ElementwiseSpecs() {
  std::vector<CodecSpec> specs;
  for (CodecKind kind : {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16, CodecKind::kFp8,
                         CodecKind::kBlockwise8, CodecKind::kUniform}) {
    specs.push_back(Supported(kind));
    if (kind == CodecKind::kBlockwise8) specs.back().block = 5;
  }
  CodecSpec spec = Supported(CodecKind::kUniform);
  spec.rotation = Rotation::kHadamard;
  spec.rotation_block = 8;
  specs.push_back(spec);
  spec = Supported(CodecKind::kUniform);
  spec.scope = Scope::kGroup;
  spec.group = 5;
  spec.range = Range::kFixedPoint;
  specs.push_back(spec);
  spec.lossless = Lossless::kZstd;
  specs.push_back(spec);
  return specs;
}

TEST(SupportedTest, ElementwiseCodecsSendTheSupportedEntriesAlone) {
  for (int64_t n : kSizes) {
    for (double share : kShares) {
      const std::vector<float> x = RandomValues(n, 3), activation = Activation(n, share, n);
      for (const CodecSpec& spec : ElementwiseSpecs()) {
        CodecSpec inner = spec;
        inner.support = Support::kAll;
        ExpectAsInner(spec, inner, x, activation);
      }
      for (Values values : {Values::kF32, Values::kF16, Values::kBF16, Values::kUniform}) {
        const CodecSpec spec = Shared(values);
        ExpectAsInner(spec, CodecOfValues(spec), x, activation);
      }
    }
  }
}

// Tests that with one scope the payload is that of as many entries out of the supported ones alone.
TEST(SupportedTest, TopKPlacesEntriesAmongTheSupported) {
  for (int64_t n : kSizes) {
    for (double share : kShares) {
      const std::vector<float> x = RandomValues(n, 3), activation = Activation(n, share, n);
      CodecSpec spec = Supported(CodecKind::kTopK), inner;
      inner.kind = CodecKind::kTopK;
      spec.k = inner.k = 1 + n / 20;
      ExpectAsInner(spec, inner, x, activation);
    }
  }
}

// Tests against sorting: K counts every element of a scope, only supported ones are chosen.
TEST(SupportedTest, TopKHoldsForEveryScope) {
  for (const Shape& shape : {Shape{2, 3}, Shape{7, 1, 5}, Shape{4, 9, 33}, Shape{5, 3000}}) {
    const std::vector<float> x = RandomValues(shape.elements(), 3);
    for (double share : kShares) {
      const std::vector<float> activation = Activation(shape.elements(), share, 4);
      const SupportMap support = SupportOfValues(activation);
      std::vector<float> masked = x;
      for (size_t i = 0; i < x.size(); ++i) masked[i] = activation[i] != 0 ? x[i] : 0;
      for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
        for (double ratio : {0.01, 0.2, 0.8}) {
          CodecSpec spec = Supported(CodecKind::kTopK);
          spec.scope = scope;
          spec.ratio = ratio;
          CodecSpec plain = spec;
          plain.support = Support::kAll;
          EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, x), 1, &support),
                    *RoundTrip(plain, TensorOf(shape, masked)))
              << spec.ToString();
        }
      }
    }
  }
}

TEST(SupportedTest, TopKsIndicesCostLess) {
  CodecSpec spec = Supported(CodecKind::kTopK);
  spec.ratio = 0.1;
  const std::vector<float> x = RandomValues(100000, 3);
  const SupportMap support = SupportOfValues(Activation(100000, 0.25, 4));
  const size_t bytes = EncodeToBytes(spec, TensorOf(x), 1, &support)->size();
  // Four in ten supported entries: 0.971 bits each are the entropy, a bitmap costs one.
  EXPECT_NEAR(bytes - 8 - 4 * 10000, support.count() / 8, 1);
  spec.support = Support::kAll;
  EXPECT_GT(EncodeToBytes(spec, TensorOf(x))->size() - 8 - 4 * 10000, 1.8 * support.count() / 8);
}

// Tests a large sample, whose codes foretell each other although their neighbours are not sent.
TEST(SupportedTest, CodesOfEcsqAreForetoldByThoseBefore) {
  constexpr int64_t kSamples = 100, kElements = 3000, kCount = kSamples * kElements;
  CodecSpec spec = Supported(CodecKind::kEcsq);
  spec.rounding = Rounding::kDither;
  spec.lossless = Lossless::kEntropy;
  const SupportMap support = SupportOfValues(Activation(kCount, 0.6, 3));
  // Elements of several scales; those of `run` consecutive elements are alike.
  const auto bytes_of_runs = [&](int64_t run) {
    std::vector<float> x = RandomValues(kCount, 4);
    RandomStream scales(5);
    int scale = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      if (i % run == 0) scale = static_cast<int>(scales.Next() % 5) - 2;
      x[i] = std::ldexp(x[i], scale);
    }
    return static_cast<double>(EncodeToBytes(spec, TensorOf(x), 7, &support)->size());
  };
  EXPECT_LT(bytes_of_runs(kElements), 0.9 * bytes_of_runs(1));
}

TEST(SupportedTest, ThresholdMeasuresTheSupportedEntries) {
  CodecSpec spec = Supported(CodecKind::kThreshold);
  spec.threshold = 1;
  spec.relative_to = RelativeTo::kRms;
  const SupportMap support = SupportOfValues({1, 0, 1, 0, 1, 1});
  // 100 does not count: the mean square of 1, 2, 3, 0 is 3.5.
  EXPECT_THAT(*RoundTrip(spec, TensorOf({1, 100, 2, 100, 3, 0}), 1, &support),
              ElementsAre(0, 0, 2, 0, 3, 0));
  spec.relative_to = RelativeTo::kMax;
  EXPECT_THAT(*RoundTrip(spec, TensorOf({1, 100, 2, 100, 3, 0}), 1, &support),
              ElementsAre(0, 0, 0, 0, 3, 0));
}

TEST(SupportedTest, WhatIsDroppedIsNotLookedAt) {
  const SupportMap support = SupportOfValues({1, 0, 1});
  for (CodecKind kind :
       {CodecKind::kUniform, CodecKind::kTopK, CodecKind::kThreshold, CodecKind::kRandomK}) {
    CodecSpec spec = Supported(kind);
    if (kind == CodecKind::kTopK || kind == CodecKind::kRandomK) spec.ratio = 1;
    if (kind == CodecKind::kThreshold) spec.threshold = 0.5;
    EXPECT_THAT(*RoundTrip(spec, TensorOf({1, NAN, 2}), 1, &support), ElementsAre(1, 0, 2));
    EXPECT_EQ(EncodeToBytes(spec, TensorOf({1, 1, NAN}), 1, &support).status().code(),
              absl::StatusCode::kOutOfRange);
  }
}

TEST(SupportedTest, AnErrorNamesTheElementOfTheTensor) {
  const SupportMap support = SupportOfValues({0, 1, 0, 1});
  std::vector<CodecSpec> specs;
  for (CodecKind kind : {CodecKind::kTopK, CodecKind::kThreshold, CodecKind::kRandomK,
                         CodecKind::kUniform, CodecKind::kFp8, CodecKind::kBlockwise8}) {
    specs.push_back(Supported(kind));
    if (kind == CodecKind::kTopK || kind == CodecKind::kRandomK) specs.back().ratio = 1;
    if (kind == CodecKind::kThreshold) specs.back().threshold = 0.5;
    if (kind == CodecKind::kBlockwise8) specs.back().block = 2;
  }
  specs.push_back(Shared(Values::kUniform));
  for (const CodecSpec& spec : specs) {
    for (const Tensor& x :
         {TensorOf({NAN, INFINITY, 1, 2}), BFloatTensorOf({4}, {NAN, INFINITY, 1, 2})}) {
      EXPECT_EQ(EncodeToBytes(spec, x, 1, &support).status().message(),
                absl::StrCat(Name(spec.kind), ": element 1 is inf, want finite values"));
    }
  }
}

TEST(SupportedTest, NoPayloadIsLongerThanPromised) {
  for (const CodecSpec& base : {Supported(CodecKind::kTopK), Supported(CodecKind::kRandomK)}) {
    for (double ratio : {0.1, 0.5, 1.0}) {
      for (Values values : {Values::kF32, Values::kF16, Values::kUniform}) {
        CodecSpec spec = base;
        spec.ratio = ratio;
        spec.values = values;
        const size_t most = CodecOf(spec)->MaxPayloadBytes({3, 50}, DType::kF32);
        for (double share : kShares) {
          const SupportMap support = SupportOfValues(Activation(150, share, 1));
          const Tensor x = TensorOf({3, 50}, RandomValues(150, 2));
          EXPECT_LE(EncodeToBytes(spec, x, 1, &support)->size(), most) << spec.ToString();
        }
      }
    }
  }
}

TEST(SupportedTest, RefusesAMissingSupportAndOneOfAnotherSize) {
  Tensor x = TensorOf({1, 2, 3});
  const SupportMap other = SupportOfValues({1, 1});
  for (CodecKind kind : {CodecKind::kNone, CodecKind::kTopK, CodecKind::kRandomK}) {
    CodecSpec spec = Supported(kind);
    if (kind != CodecKind::kNone) spec.ratio = 1;
    const auto codec = CodecOf(spec);
    std::vector<uint8_t> payload(100);
    for (const auto& [support, message] :
         {std::pair<const SupportMap*, const char*>(nullptr, "no support"),
          std::pair<const SupportMap*, const char*>(&other, "support of 2 elements, want 3")}) {
      const MessageContext context = {1, support};
      const auto encoded = codec->Encode(x, context, absl::MakeSpan(payload));
      EXPECT_EQ(encoded.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(encoded.status().message()), HasSubstr(message));
      const absl::Status decoded = codec->Decode(payload, context, &x);
      EXPECT_EQ(decoded.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(decoded.message()), HasSubstr(message));
    }
  }
}

TEST(SupportedTest, RefusesAPayloadOfAnotherSupport) {
  const SupportMap support = SupportOfValues({1, 0, 1}), other = SupportOfValues({1, 1, 1});
  const CodecSpec spec = Shared(Values::kF32);
  const auto payload = *EncodeToBytes(spec, TensorOf({1, 2, 3}), 1, &support);
  EXPECT_TRUE(DecodeFromBytes(spec, payload, {3}, DType::kF32, &support).ok());
  EXPECT_FALSE(DecodeFromBytes(spec, payload, {3}, DType::kF32, &other).ok());
}

}  // namespace
}  // namespace thinwire
