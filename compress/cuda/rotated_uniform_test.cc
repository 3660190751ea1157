#include <gtest/gtest.h>

#include <utility>

#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

CodecSpec SpecOf(uint32_t block, uint32_t bits = 8) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.bits = bits;
  spec.rotation = Rotation::kHadamard;
  spec.rotation_block = block;
  return spec;
}

TEST(CudaRotatedUniformTest, EveryBlockHasTheCpusBytes) {
  for (int64_t n : {0, 1, 2, 3, 255, 257, 5000, 8193}) {
    const NamedValues normal{"normal", NormalValues(n)};
    for (uint32_t block = 2; block <= 1u << 15; block *= 2) {
      // Under all larger blocks, small tensors consist of one remainder.
      if (block > 2 * n + 2) continue;
      ExpectTwins(SpecOf(block), {n}, normal);
    }
  }
}

// Tests blocks, and remainders, of more elements than a block of threads holds.
TEST(CudaRotatedUniformTest, LongBlocksHaveTheCpusBytes) {
  const std::pair<int64_t, DType> tensors[] = {
      {16384, DType::kF32}, {24576, DType::kBF16}, {40000, DType::kF32}, {65535, DType::kBF16}};
  for (const auto& [n, dtype] : tensors) {
    for (uint32_t block : {8192u, 16384u, 32768u}) {
      ExpectTwins(SpecOf(block), {n}, dtype, {"normal", NormalValues(n)});
    }
  }
}

TEST(CudaRotatedUniformTest, SpecialValuesHaveTheCpusBytesAndErrors) {
  const Shape shape = {3, 5, 33};
  for (const NamedValues& c : CasesOf(shape.elements())) {
    for (Range range : {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint}) {
      for (Scope scope : {Scope::kTensor, Scope::kToken, Scope::kChannel}) {
        CodecSpec spec = SpecOf(64, 4);
        spec.range = range;
        spec.scope = scope;
        spec.rounding = Rounding::kStochastic;
        ExpectTwins(spec, shape, c);
      }
    }
  }
}

TEST(CudaRotatedUniformTest, TheLargestValueIsNamed) {
  const Shape shape = {20000};
  std::vector<float> values = NormalValues(20000);
  values[100] = 1e33f;
  values[19999] = -3e33f;
  const CodecSpec spec = SpecOf(1024);
  const Encoded encoded = ExpectSameEncoding(HostTensor(shape, DType::kF32, values),
                                             Capacity(spec, shape), EncodeBy(spec));
  EXPECT_EQ(encoded.error.code, static_cast<int>(absl::StatusCode::kInvalidArgument));
}

// Tests ranges that are finite, but too large to be rotated back.
TEST(CudaRotatedUniformTest, TooLargeRotatedValuesMeetTheCpusError) {
  const Shape shape = {30000};
  for (uint32_t block : {2u, 64u, 8192u, 32768u}) {
    CodecSpec spec = SpecOf(block);
    spec.scope = Scope::kGroup;
    spec.group = 1000;
    Encoded encoded = EncodeOn(CpuTwin(), HostTensor(shape, DType::kF32, NormalValues(30000)),
                               Capacity(spec, shape), EncodeBy(spec));
    ASSERT_TRUE(encoded.error.ok());
    for (int group : {9, 10, 25}) {
      const float range = 1e38f * static_cast<float>(group);
      std::memcpy(encoded.payload.data() + kRotationKeyBytes + 8 * group + 4, &range, 4);
    }
    for (DType dtype : kTensorTypes) {
      ExpectSameDecoding(encoded.payload, shape, dtype, DecodeBy(spec));
    }
  }
}

TEST(CudaRotatedUniformTest, DamagedPayloadsMeetTheCpusVerdict) {
  const Shape shape = {3, 7};
  const CodecSpec spec = SpecOf(4, 3);
  for (DType dtype : kTensorTypes) {
    const Encoded encoded =
        ExpectSameEncoding(HostTensor(shape, dtype, NormalValues(shape.elements())),
                           Capacity(spec, shape), EncodeBy(spec));
    ExpectSameVerdictsWhenCut(encoded.payload, shape, dtype, DecodeBy(spec));
    ExpectSameVerdictsWhenDamaged(encoded.payload, shape, dtype, DecodeBy(spec));
  }
}

TEST(CudaRotatedUniformTest, TooLittlePayloadMemoryIsTheCpusError) {
  const Tensor x = HostTensor({9}, DType::kF32, NormalValues(9));
  const CodecSpec spec = SpecOf(4);
  for (size_t capacity : {size_t{0}, size_t{7}, size_t{8}, Capacity(spec, {9}) - 1}) {
    EXPECT_FALSE(ExpectSameEncoding(x, capacity, EncodeBy(spec)).error.ok());
  }
}

}  // namespace
}  // namespace thinwire
