// Tests of what holds for every codec.
#include "compress/codecs/new_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compress/codec_table.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/sample_specs_testing.h"

namespace thinwire {
namespace {

// Returns specifications with every way to send kept values, every code for them and every support.
std::vector<CodecSpec> SpecsOfValues() {
  std::vector<CodecSpec> specs;
  for (Support support : {Support::kAll, Support::kReceivedNonzero}) {
    CodecSpec spec;
    spec.support = support;
    for (Values values : {Values::kF32, Values::kF16, Values::kBF16}) {
      spec.values = values;
      specs.push_back(spec);
    }
    spec.values = Values::kUniform;
    spec.bits = 5;
    specs.push_back(spec);
    spec.group = 7;
    spec.range = Range::kMaxAbs;
    spec.rounding = Rounding::kStochastic;
    specs.push_back(spec);
  }
  return specs;
}

void AppendSparseSpecs(const CodecSpec& values, std::vector<CodecSpec>* specs) {
  CodecSpec spec = values;
  spec.kind = CodecKind::kThreshold;
  spec.threshold = 0.5;
  for (RelativeTo to : {RelativeTo::kAbsolute, RelativeTo::kRms, RelativeTo::kMax}) {
    spec.relative_to = to;
    specs->push_back(spec);
  }
  spec = values;
  spec.ratio = 0.3;
  for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
    spec.scope = scope;
    spec.kind = CodecKind::kTopK;
    specs->push_back(spec);
    spec.kind = CodecKind::kRandomK;
    specs->push_back(spec);
    spec.unbiased = true;
    specs->push_back(spec);
    spec.unbiased = false;
  }
  spec = values;
  if (spec.support == Support::kReceivedNonzero) return;
  spec.kind = CodecKind::kTopK;
  spec.indices = Indices::kShared;
  specs->push_back(spec);
}

// Returns the codecs that send all elements, on the support.
void AppendSupportedSpecs(std::vector<CodecSpec>* specs) {
  CodecSpec spec;
  spec.support = Support::kReceivedNonzero;
  for (CodecKind kind :
       {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16, CodecKind::kUniform}) {
    spec.kind = kind;
    specs->push_back(spec);
  }
  spec.scope = Scope::kGroup;
  spec.group = 7;
  specs->push_back(spec);
}

std::vector<CodecSpec> EverySpec() {
  std::vector<CodecSpec> specs;
  CodecSpec spec;
  for (CodecKind kind : {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16}) {
    spec.kind = kind;
    specs.push_back(spec);
  }
  spec.kind = CodecKind::kUniform;
  for (Scope scope :
       {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken, Scope::kGroup}) {
    spec.scope = scope;
    spec.group = scope == Scope::kGroup ? 7 : 0;
    for (Range range : {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint}) {
      spec.range = range;
      for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
        spec.rounding = rounding;
        for (uint32_t bits = 2; bits <= 8; ++bits) {
          spec.bits = bits;
          spec.zero = bits % 2 ? Zero::kFree : Zero::kOnGrid;
          specs.push_back(spec);
        }
      }
    }
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kTopK;
  for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
    spec.scope = scope;
    for (double ratio : {0.02, 0.1, 0.6}) {
      spec.ratio = ratio;
      for (Values values : {Values::kF32, Values::kF16, Values::kBF16}) {
        spec.values = values;
        for (Pad pad : {Pad::kNone, Pad::kExactK}) {
          spec.pad = pad;
          specs.push_back(spec);
        }
      }
    }
  }
  for (const CodecSpec& values : SpecsOfValues()) AppendSparseSpecs(values, &specs);
  AppendSupportedSpecs(&specs);
  spec = CodecSpec();
  spec.kind = CodecKind::kFp8;
  for (Fp8Format format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    spec.format = format;
    specs.push_back(spec);
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kBlockwise8;
  for (uint32_t block : {7, 4096}) {
    spec.block = block;
    specs.push_back(spec);
  }
  spec = CodecSpec();
  spec.kind = CodecKind::kUniform;
  spec.rotation = Rotation::kHadamard;
  for (uint32_t block : {2, 16, 256}) {
    spec.rotation_block = block;
    for (Range range : {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint}) {
      spec.range = range;
      spec.rounding = range == Range::kMinMax ? Rounding::kNearest : Rounding::kStochastic;
      specs.push_back(spec);
    }
  }
  for (size_t i = specs.size(); i > 0; i -= std::min<size_t>(i, 17)) {
    specs.push_back(specs[i - 1]);
    specs.back().lossless = i % 2 != 0 ? Lossless::kZstd : Lossless::kEntropy;
  }
  specs.emplace_back().lossless = Lossless::kZstd;
  specs.emplace_back().lossless = Lossless::kEntropy;
  return specs;
}

// Payloads and decoded bytes of every codec for some tensors.
std::vector<std::vector<uint8_t>> EverythingOf(const std::vector<CodecSpec>& specs,
                                               const std::vector<Shape>& shapes) {
  std::vector<std::vector<uint8_t>> all;
  for (const Shape& shape : shapes) {
    for (bool relu : {false, true}) {
      const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 1, relu));
      for (const CodecSpec& spec : specs) {
        const std::vector<uint8_t> payload = *EncodeToBytes(spec, x);
        all.push_back(payload);
        for (DType dtype : {DType::kF32, DType::kBF16}) {
          if (spec.kind == CodecKind::kNone && dtype == DType::kBF16) continue;
          const Tensor y = *DecodeFromBytes(spec, payload, shape, dtype);
          const uint8_t* bytes = static_cast<const uint8_t*>(y.data());
          all.emplace_back(bytes, bytes + y.bytes());
        }
      }
    }
  }
  return all;
}

void ExpectTheSameBitsOnEverySimdTarget(const std::vector<CodecSpec>& specs,
                                        const std::vector<Shape>& shapes) {
  const auto best = EverythingOf(specs, shapes);
  int num_targets = 0;
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(EverythingOf(specs, shapes), best) << hwy::TargetName(target);
    ++num_targets;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  EXPECT_GE(num_targets, 1);
}

TEST(EveryCodecTest, GivesTheSameBitsOnEverySimdTarget) {
  ExpectTheSameBitsOnEverySimdTarget(EverySpec(), {{3, 11, 13}, {2, 2500}});
}

// Principal axes of a few channels only: finding those of many takes long.
TEST(EverySampleTest, GivesTheSameBitsOnEverySimdTarget) {
  ExpectTheSameBitsOnEverySimdTarget(SampleSpecsOfAll(), {{3, 11, 13}, {20, 25, 10}});
}

TEST(EveryCodecTest, EveryCutOfAPayloadIsAnError) {
  const Shape shape = {2, 5, 7};
  const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 2));
  for (const CodecSpec& spec : EverySpec()) {
    const std::vector<uint8_t> payload = *EncodeToBytes(spec, x);
    for (size_t length = 0; length < payload.size(); ++length) {
      const std::vector<uint8_t> cut(payload.begin(), payload.begin() + length);
      EXPECT_EQ(DecodeFromBytes(spec, cut, shape).status().code(),
                absl::StatusCode::kInvalidArgument)
          << spec.ToString() << " cut to " << length;
    }
  }
}

TEST(EveryCodecTest, ATrailingByteIsAnError) {
  const Shape shape = {2, 5, 7};
  const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 2));
  for (const CodecSpec& spec : EverySpec()) {
    std::vector<uint8_t> payload = *EncodeToBytes(spec, x);
    for (uint8_t extra : {0, 1}) {
      payload.push_back(extra);
      EXPECT_FALSE(DecodeFromBytes(spec, payload, shape).ok()) << spec.ToString();
      payload.pop_back();
    }
  }
}

TEST(EveryCodecTest, EmptyTensorsTravel) {
  for (const CodecSpec& spec : EverySpec()) {
    const auto payload = EncodeToBytes(spec, TensorOf({0, 4}, {}));
    ASSERT_TRUE(payload.ok()) << spec.ToString();
    EXPECT_TRUE(DecodeFromBytes(spec, *payload, {0, 4}).ok()) << spec.ToString();
  }
}

TEST(EveryCodecTest, OneElementTravels) {
  for (const CodecSpec& spec : EverySpec()) {
    // blockwise8 has an entry for the largest magnitude of a block, but not for its negative.
    const float tolerance = spec.kind == CodecKind::kBlockwise8 ? 0.0053f : 1e-6f;
    EXPECT_NEAR((*RoundTrip(spec, TensorOf({1, 1}, {-0.75f})))[0], -0.75f, tolerance)
        << spec.ToString();
  }
}

TEST(EveryCodecTest, ZerosArriveAsZerosAndTinyValuesStayTiny) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5, 7}, Shape{2, 64}}) {
    const std::vector<float> zeros(shape.elements());
    for (const CodecSpec& spec : EverySpec()) {
      EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, zeros)), zeros) << spec.ToString();
      for (float tiny : {1e-45f, 1e-40f}) {  // denormals
        std::vector<float> x = zeros;
        for (size_t i = 0; i < x.size(); ++i) x[i] = tiny * static_cast<float>(i % 3);
        const std::vector<float> y = *RoundTrip(spec, TensorOf(shape, x));
        EXPECT_TRUE(std::all_of(y.begin(), y.end(), [&](float value) {
          return std::fabs(value) <= 100 * tiny;
        })) << spec.ToString();
      }
    }
  }
}

TEST(EveryCodecTest, RefusesPayloadMemoryThatIsTooSmall) {
  const Tensor x = TensorOf(RandomValues(64, 3));
  for (const CodecSpec& spec : EverySpec()) {
    const auto codec = CodecOf(spec);
    const size_t bytes = EncodeToBytes(spec, x)->size();
    std::vector<uint8_t> payload(bytes - 1);
    EXPECT_EQ(codec->Encode(x, {1}, absl::MakeSpan(payload)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << spec.ToString();
  }
}

TEST(EveryCodecTest, BFloatTensorsAreWidenedExactly) {
  const Shape shape = {2, 5, 7};
  std::vector<float> x = RandomValues(shape.elements(), 4);
  for (float& value : x) value = std::round(value * 64) / 64;  // fits bf16's eight bits
  for (const CodecSpec& spec : EverySpec()) {
    if (spec.kind == CodecKind::kNone) continue;
    EXPECT_EQ(*EncodeToBytes(spec, BFloatTensorOf(shape, x)),
              *EncodeToBytes(spec, TensorOf(shape, x)))
        << spec.ToString();
  }
}

// The table of codecs against what they do.

TEST(CodecRowTest, SaysWhoCarriesNan) {
  std::vector<float> values = RandomValues(70, 5);
  values[20] = std::nanf("");
  for (const CodecSpec& spec : SampleSpecsOfAll()) {
    if (spec.needs_support()) continue;  // what is not supported is not looked at
    const auto payload = EncodeToBytes(spec, TensorOf({2, 5, 7}, values));
    EXPECT_EQ(payload.ok(), CodecRowOf(spec.kind).carries_nonfinite) << spec.ToString();
  }
}

TEST(CodecRowTest, SaysWhoLosesNothing) {
  const Shape shape = {2, 5, 7};
  const std::vector<float> values = RandomValues(shape.elements(), 6);
  for (const CodecSpec& spec : SampleSpecsOfAll()) {
    if (spec.needs_support() || spec.ratio == 1) continue;
    EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, values)) == values,
              CodecRowOf(spec.kind).is_lossless)
        << spec.ToString();
  }
}

// What a message leaves is what is read from its parts: the next payload shows it.
TEST(CarryTest, OfEveryCodecIsReadFromItsParts) {
  const Shape shape = {2, 5, 7};
  const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 7));
  const SupportMap support = SomeSupport(shape.elements());
  int leave_something = 0;
  for (const CodecSpec& spec : SampleSpecsOfAll()) {
    const auto codec = CodecOf(spec);
    const auto encode = [&](std::shared_ptr<const Carry>* carry) {
      const std::shared_ptr<const Carry> before = *carry;
      const MessageContext context = {1, spec.needs_support() ? &support : nullptr, before.get(),
                                      carry};
      std::vector<uint8_t> payload(codec->MaxPayloadBytes(shape, DType::kF32));
      payload.resize(codec->Encode(x, context, absl::MakeSpan(payload)).value_or(0));
      return payload;
    };
    std::shared_ptr<const Carry> left;
    encode(&left);
    if (left == nullptr) continue;
    ++leave_something;
    auto read = codec->ReadCarry(left->Parts(), shape.WithBatch(1), CpuDevice());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(encode(&left), encode(&*read)) << spec.ToString();
    for (const StoredTensor& part : left->Parts()) {
      EXPECT_EQ(DataOfPart(*read, part.name), part.data) << spec.ToString();
    }
  }
  EXPECT_GE(leave_something, 2);
}

// A causal codec decodes a row of a message as it would decode the row alone, once outliers are
// chosen.
TEST(CodecRowTest, SaysWhoIsCausal) {
  constexpr int64_t kWidth = 64;
  const std::vector<float> values = RandomValues(3 * kWidth, 8);
  const std::vector<float> row(values.begin(), values.begin() + kWidth);
  for (const CodecSpec& spec : SampleSpecsOfAll()) {
    if (!IsCausal(spec, kWidth) || spec.needs_support() || spec.outliers > 0) continue;
    const std::vector<float> all = *RoundTrip(spec, TensorOf({3, kWidth}, values));
    const std::vector<float> alone = *RoundTrip(spec, TensorOf({1, kWidth}, row));
    EXPECT_EQ(std::vector<float>(all.begin(), all.begin() + kWidth), alone) << spec.ToString();
  }
}

TEST(NewCodecTest, RefusesASpecificationOutOfRange) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.bits = 0;
  EXPECT_EQ(NewCodec(spec, CpuCodecKernels()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thinwire
