#include <gtest/gtest.h>

#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

CodecSpec SpecOf(uint32_t block) {
  CodecSpec spec;
  spec.kind = CodecKind::kBlockwise8;
  spec.block = block;
  return spec;
}

const Shape kShapes[] = {{0}, {1}, {3}, {5, 7}, {2, 3, 5, 64}, {4096}, {3, 11111}};
// Block sizes; one is larger than any tensor here, one larger than what one warp looks at.
constexpr uint32_t kBlocks[] = {1, 2, 3, 5, 64, 1000, 2049, 4096, 4000000000u};

TEST(CudaBlockwise8Test, BytesAndBitsAreTheCpus) {
  for (const Shape& shape : kShapes) {
    for (const NamedValues& c : CasesOf(shape.elements())) {
      for (uint32_t block : kBlocks) ExpectTwins(SpecOf(block), shape, c);
    }
  }
}

// Tests all upper halves of the floats up to the absmax, with several lower halves.
TEST(CudaBlockwise8Test, EveryMagnitudeFindsTheCpusCode) {
  for (uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0xFFFFu}) {
    std::vector<float> values(65536);
    for (uint32_t i = 0; i < 65536; ++i) {
      const float value = FloatOf(i << 16 | low);
      values[i] = std::fabs(value) < 1.0f ? value : 1.0f;
    }
    const Tensor x = HostTensor({65536}, DType::kF32, values);
    for (uint32_t block : {4096u, 65536u}) {
      ExpectSameEncoding(x, Blockwise8PayloadBytes(block, 65536), EncodeBy(SpecOf(block)));
    }
  }
}

TEST(CudaBlockwise8Test, DamagedPayloadsMeetTheCpusVerdict) {
  const Shape shape = {3, 7};
  for (DType dtype : kTensorTypes) {
    const Tensor x = HostTensor(shape, dtype, NormalValues(21));
    for (uint32_t block : {4u, 100u}) {
      const Encoded encoded = ExpectSameEncoding(x, Blockwise8PayloadBytes(block, x.elements()),
                                                 EncodeBy(SpecOf(block)));
      ExpectSameVerdictsWhenCut(encoded.payload, shape, dtype, DecodeBy(SpecOf(block)));
      ExpectSameVerdictsWhenDamaged(encoded.payload, shape, dtype, DecodeBy(SpecOf(block)));
    }
  }
}

TEST(CudaBlockwise8Test, TooLittlePayloadMemoryIsTheCpusError) {
  const Tensor x = HostTensor({9}, DType::kF32, NormalValues(9));
  EXPECT_FALSE(
      ExpectSameEncoding(x, Blockwise8PayloadBytes(4, 9) - 1, EncodeBy(SpecOf(4))).error.ok());
}

}  // namespace
}  // namespace thinwire
