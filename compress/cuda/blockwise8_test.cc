#include <gtest/gtest.h>

#include "compress/cuda/twins_testing.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

EncodeCall EncodeInBlocks(uint32_t block) {
  return [block](CodecKernels* kernels, const TensorView& x, uint8_t* payload, size_t capacity,
                 size_t* bytes) {
    return kernels->Blockwise8Encode(x, block, payload, capacity, bytes);
  };
}
DecodeCall DecodeInBlocks(uint32_t block) {
  return [block](CodecKernels* kernels, const uint8_t* payload, size_t bytes, const TensorView& x) {
    return kernels->Blockwise8Decode(payload, bytes, block, x);
  };
}

const Shape kShapes[] = {{0}, {1}, {3}, {5, 7}, {2, 3, 5, 64}, {4096}, {3, 11111}};
constexpr DType kTensorTypes[] = {DType::kF32, DType::kBF16};
// One of more elements than any tensor here, or than one warp looks at, among them.
constexpr uint32_t kBlocks[] = {1, 2, 3, 5, 64, 1000, 2049, 4096, 4000000000u};

TEST(CudaBlockwise8Test, BytesAndBitsAreTheCpus) {
  for (const Shape& shape : kShapes) {
    for (const NamedValues& c : CasesOf(shape.elements())) {
      for (DType dtype : kTensorTypes) {
        const Tensor x = HostTensor(shape, dtype, c.values);
        for (uint32_t block : kBlocks) {
          SCOPED_TRACE(absl::StrCat(c.name, " ", shape.ToString(), " of ", Name(dtype),
                                    " in blocks of ", block));
          ExpectTwins(x, Blockwise8PayloadBytes(block, x.elements()), EncodeInBlocks(block),
                      DecodeInBlocks(block));
        }
      }
    }
  }
}

// All upper halves of the floats up to the absmax, with several lower halves.
TEST(CudaBlockwise8Test, EveryMagnitudeFindsTheCpusCode) {
  for (uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0xFFFFu}) {
    std::vector<float> values(65536);
    for (uint32_t i = 0; i < 65536; ++i) {
      const float value = FloatOf(i << 16 | low);
      values[i] = std::fabs(value) < 1.0f ? value : 1.0f;
    }
    const Tensor x = HostTensor({65536}, DType::kF32, values);
    ExpectSameEncoding(x, Blockwise8PayloadBytes(65536, 65536), EncodeInBlocks(65536));
  }
}

TEST(CudaBlockwise8Test, DamagedPayloadsMeetTheCpusVerdict) {
  const Shape shape = {3, 7};
  for (DType dtype : kTensorTypes) {
    const Tensor x = HostTensor(shape, dtype, NormalValues(21));
    for (uint32_t block : {4u, 100u}) {
      const Encoded encoded =
          ExpectSameEncoding(x, Blockwise8PayloadBytes(block, x.elements()), EncodeInBlocks(block));
      ExpectSameVerdictsWhenCut(encoded.payload, shape, dtype, DecodeInBlocks(block));
      ExpectSameVerdictsWhenDamaged(encoded.payload, shape, dtype, DecodeInBlocks(block));
    }
  }
}

TEST(CudaBlockwise8Test, TooLittlePayloadMemoryIsTheCpusError) {
  const Tensor x = HostTensor({9}, DType::kF32, NormalValues(9));
  EXPECT_FALSE(
      ExpectSameEncoding(x, Blockwise8PayloadBytes(4, 9) - 1, EncodeInBlocks(4)).error.ok());
}

}  // namespace
}  // namespace thinwire
