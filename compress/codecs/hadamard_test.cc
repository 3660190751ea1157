// Tests of uniform with rotation hadamard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

CodecSpec Rotated(uint32_t block, uint32_t bits = 4, Scope scope = Scope::kTensor) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.bits = bits;
  spec.scope = scope;
  if (scope == Scope::kGroup) spec.group = 5;
  spec.rotation = Rotation::kHadamard;
  spec.rotation_block = block;
  return spec;
}

CodecSpec Plain(CodecSpec spec) {
  spec.rotation = Rotation::kNone;
  spec.rotation_block = 0;
  return spec;
}

// Transforms by the textbook's loop.
void Transform(float* x, size_t size) {
  for (size_t h = 1; h < size; h *= 2) {
    for (size_t i = 0; i < size; ++i) {
      if (i & h) continue;
      const float a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  }
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<long double>(size)));
  for (size_t i = 0; i < size; ++i) x[i] *= scale;
}

void TransformBlocks(size_t block, std::vector<float>* x) {
  for (size_t begin = 0; begin < x->size();) {
    size_t size = block;
    while (size > x->size() - begin) size /= 2;
    Transform(x->data() + begin, size);
    begin += size;
  }
}

void FlipSigns(uint64_t key, std::vector<float>* x) {
  RandomStream random(key);
  uint32_t bits = 0;
  for (size_t i = 0; i < x->size(); ++i) {
    if (i % 32 == 0) bits = random.Next();
    if (bits >> (i % 32) & 1) (*x)[i] = -(*x)[i];
  }
}

std::vector<uint8_t> ReferencePayload(const CodecSpec& spec, const Shape& shape,
                                      std::vector<float> x, uint64_t key) {
  FlipSigns(key, &x);
  TransformBlocks(spec.rotation_block, &x);
  const std::vector<uint8_t> rest = *EncodeToBytes(Plain(spec), TensorOf(shape, x), ~key);
  std::vector<uint8_t> payload(8 + rest.size());
  std::memcpy(payload.data(), &key, 8);
  std::copy(rest.begin(), rest.end(), payload.begin() + 8);
  return payload;
}

std::vector<float> ReferenceDecoded(const CodecSpec& spec, const Shape& shape,
                                    const std::vector<uint8_t>& payload) {
  uint64_t key;
  std::memcpy(&key, payload.data(), 8);
  const std::vector<uint8_t> rest(payload.begin() + 8, payload.end());
  std::vector<float> x = FloatsOf(*DecodeFromBytes(Plain(spec), rest, shape));
  TransformBlocks(spec.rotation_block, &x);
  FlipSigns(key, &x);
  return x;
}

constexpr uint32_t kBlocks[] = {2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 8192, 32768};

TEST(HadamardTest, IsTheTextbookTransformForEveryBlockAndLength) {
  for (uint32_t block : kBlocks) {
    for (int64_t n : {0, 1, 2, 3, 7, 31, 63, 64, 65, 130, 1023, 4097, 8190, 40000}) {
      const std::vector<float> x = RandomValues(n, n);
      const auto payload = *EncodeToBytes(Rotated(block), TensorOf(x), 42);
      ASSERT_EQ(payload, ReferencePayload(Rotated(block), {n}, x, 42)) << block << " " << n;
      EXPECT_EQ(FloatsOf(*DecodeFromBytes(Rotated(block), payload, {n})),
                ReferenceDecoded(Rotated(block), {n}, payload))
          << block << " " << n;
    }
  }
}

TEST(HadamardTest, ComposesWithEveryScopeRangeAndRounding) {
  const Shape shape = {3, 11, 13};
  const std::vector<float> x = RandomValues(shape.elements(), 5);
  for (Scope scope :
       {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken, Scope::kGroup}) {
    for (Range range : {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint}) {
      for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
        CodecSpec spec = Rotated(32, 3, scope);
        spec.range = range;
        spec.rounding = rounding;
        const auto payload = *EncodeToBytes(spec, TensorOf(shape, x), 42);
        EXPECT_EQ(payload, ReferencePayload(spec, shape, x, 42)) << spec.ToString();
        EXPECT_EQ(FloatsOf(*DecodeFromBytes(spec, payload, shape)),
                  ReferenceDecoded(spec, shape, payload))
            << spec.ToString();
      }
    }
  }
}

TEST(HadamardTest, KeepsLengthsSoErrorsStayThoseOfTheGrid) {
  const std::vector<float> x = RandomValues(10000, 6);
  for (uint32_t block : kBlocks) {
    const std::vector<float> y = *RoundTrip(Rotated(block, 8), TensorOf(x));
    double error = 0, length = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      error += std::pow(y[i] - x[i], 2);
      length += x[i] * x[i];
    }
    EXPECT_LT(std::sqrt(error / length), 0.01) << block;
  }
}

// One outlier sets the range of all; rotated, its length is shared by the block.
TEST(HadamardTest, OutliersDoNotCoarsenTheGridOfAll) {
  std::vector<float> x = RandomValues(65536, 7);
  for (size_t i = 0; i < x.size(); i += 997) x[i] *= 100;
  double errors[2];
  for (int rotated = 0; rotated < 2; ++rotated) {
    const CodecSpec spec = rotated ? Rotated(1024) : Plain(Rotated(1024));
    const std::vector<float> y = *RoundTrip(spec, TensorOf(x));
    errors[rotated] = 0;
    for (size_t i = 0; i < x.size(); ++i) errors[rotated] += std::pow(y[i] - x[i], 2);
  }
  EXPECT_LT(errors[1], errors[0] / 4);
}

TEST(HadamardTest, SignsComeFromTheKeyInThePayload) {
  const Tensor x = TensorOf(RandomValues(100, 8));
  const auto one = *EncodeToBytes(Rotated(64), x, 1);
  const auto two = *EncodeToBytes(Rotated(64), x, 2);
  EXPECT_FALSE(std::equal(one.begin() + 8, one.end(), two.begin() + 8));
  EXPECT_EQ(*EncodeToBytes(Rotated(64), x, 1), one);
}

TEST(HadamardTest, BFloatTensorsAreTheFloatResultRounded) {
  const Shape shape = {3, 1001};
  std::vector<float> x = RandomValues(shape.elements(), 9);
  for (float& value : x) value = std::round(value * 64) / 64;
  const auto payload = *EncodeToBytes(Rotated(256), BFloatTensorOf(shape, x));
  EXPECT_EQ(payload, *EncodeToBytes(Rotated(256), TensorOf(shape, x)));
  const std::vector<float> wide = FloatsOf(*DecodeFromBytes(Rotated(256), payload, shape));
  const std::vector<float> narrow =
      FloatsOf(*DecodeFromBytes(Rotated(256), payload, shape, DType::kBF16));
  for (size_t i = 0; i < wide.size(); ++i)
    ASSERT_NEAR(narrow[i], wide[i], std::fabs(wide[i]) / 256);
}

TEST(HadamardTest, ZerosAndDenormalsTravel) {
  for (float value : {0.0f, 1e-42f}) {
    const std::vector<float> x(100, value);
    const std::vector<float> y = *RoundTrip(Rotated(64, 8), TensorOf(x));
    for (float back : y) EXPECT_NEAR(back, value, value / 16 + (value > 0 ? 3e-44f : 0));
  }
}

TEST(HadamardTest, NonFiniteInputIsAnErrorThatNamesTheElement) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = RandomValues(100, 9);
    x[97] = bad;
    const auto payload = EncodeToBytes(Rotated(16), TensorOf(x));
    ASSERT_EQ(payload.status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(payload.status().message()), HasSubstr("uniform: element 97"));
  }
}

TEST(HadamardTest, ValuesWhoseSumsMightOverflowAreAnError) {
  const float most = std::ldexp(1.0f, 125 - 20);
  EXPECT_FALSE(EncodeToBytes(Rotated(1024), TensorOf({std::nextafter(most, 1e38f)})).ok());
  for (uint32_t bits : {1, 2, 8}) {
    CodecSpec spec = Rotated(1024, bits);
    spec.zero = Zero::kOnGrid;
    std::vector<float> x(1024, most);
    for (uint64_t key = 0; key < 5; ++key) {
      const auto y = RoundTrip(spec, TensorOf(x), key);
      ASSERT_TRUE(y.ok()) << y.status();
      for (float value : *y) ASSERT_TRUE(std::isfinite(value));
      for (float& value : x) value = -value;
    }
  }
}

TEST(HadamardTest, RefusesRangesThatMightOverflow) {
  auto payload = *EncodeToBytes(Rotated(64, 8), TensorOf(RandomValues(64, 1)));
  const float ranges[] = {-0x1p122f, 0x1p123f};
  std::memcpy(&payload[8], ranges, 8);
  EXPECT_FALSE(DecodeFromBytes(Rotated(64, 8), payload, {64}).ok());
  const float smaller[] = {-0x1p120f, 0x1p121f};
  std::memcpy(&payload[8], smaller, 8);
  EXPECT_TRUE(DecodeFromBytes(Rotated(64, 8), payload, {64}).ok());
}

}  // namespace
}  // namespace thinwire
