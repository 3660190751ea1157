#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

CodecSpec SpecOf(Fp8Format format) {
  CodecSpec spec;
  spec.kind = CodecKind::kFp8;
  spec.format = format;
  return spec;
}

const Shape kShapes[] = {{0}, {1}, {3}, {5, 7}, {2, 3, 5, 64}, {4096}, {3, 33333}};
constexpr Fp8Format kFormats[] = {Fp8Format::kE4M3, Fp8Format::kE5M2};

TEST(CudaFp8Test, BytesAndBitsAreTheCpus) {
  for (const Shape& shape : kShapes) {
    for (const NamedValues& c : CasesOf(shape.elements())) {
      for (Fp8Format format : kFormats) ExpectTwins(SpecOf(format), shape, c);
    }
  }
}

// Tests that all upper halves of floats below the largest magnitude, which sets the scale, round as
// on the CPU.
TEST(CudaFp8Test, FloatsOfEveryMagnitudeNarrowToTheCpusBits) {
  for (uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0xFFFFu}) {
    std::vector<float> values(65536);
    for (uint32_t i = 0; i < 65536; ++i) {
      const float value = FloatOf(i << 16 | low);
      values[i] = std::fabs(value) < 448.0f ? value : 448.0f;
    }
    const Tensor x = HostTensor({65536}, DType::kF32, values);
    for (Fp8Format format : kFormats) {
      ExpectSameEncoding(x, Fp8PayloadBytes(65536), EncodeBy(SpecOf(format)));
    }
  }
}

TEST(CudaFp8Test, EveryCodeMeetsTheCpusVerdict) {
  for (Fp8Format format : kFormats) {
    for (int exponent : {-121, -120, -114, -113, -50, 0, 8, 126, 127}) {
      for (int code = 0; code < 256; ++code) {
        SCOPED_TRACE(absl::StrCat(Name(format), " exponent ", exponent, " code ", code));
        const std::vector<uint8_t> payload = {static_cast<uint8_t>(exponent),
                                              static_cast<uint8_t>(exponent >> 8),
                                              static_cast<uint8_t>(code)};
        ExpectSameDecoding(payload, {1}, DType::kF32, DecodeBy(SpecOf(format)));
      }
    }
  }
}

TEST(CudaFp8Test, DamagedPayloadsMeetTheCpusVerdict) {
  const Shape shape = {3, 7};
  for (DType dtype : kTensorTypes) {
    const Tensor x = HostTensor(shape, dtype, NormalValues(21));
    for (Fp8Format format : kFormats) {
      const Encoded encoded =
          ExpectSameEncoding(x, Fp8PayloadBytes(x.elements()), EncodeBy(SpecOf(format)));
      ExpectSameVerdictsWhenCut(encoded.payload, shape, dtype, DecodeBy(SpecOf(format)));
      ExpectSameVerdictsWhenDamaged(encoded.payload, shape, dtype, DecodeBy(SpecOf(format)));
    }
  }
}

TEST(CudaFp8Test, TooLittlePayloadMemoryIsTheCpusError) {
  const Tensor x = HostTensor({9}, DType::kF32, NormalValues(9));
  EXPECT_FALSE(
      ExpectSameEncoding(x, Fp8PayloadBytes(9) - 1, EncodeBy(SpecOf(Fp8Format::kE4M3))).error.ok());
}

}  // namespace
}  // namespace thinwire
