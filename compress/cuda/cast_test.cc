#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

EncodeCall EncodeTo(DType to) {
  return [to](CodecKernels* kernels, const TensorView& x, const PayloadBuffer& payload) {
    return kernels->CastTo(to, x, payload);
  };
}
DecodeCall DecodeFrom(DType from) {
  return [from](CodecKernels* kernels, const PayloadView& payload, const TensorView& x) {
    return kernels->CastFrom(payload, from, x);
  };
}

const Shape kShapes[] = {{0}, {1}, {3}, {5, 7}, {2, 3, 5, 64}, {4096}, {3, 33333}};
constexpr DType kWireTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

TEST(CudaCastTest, BytesAndBitsAreTheCpus) {
  for (const Shape& shape : kShapes) {
    for (const NamedValues& c : CasesOf(shape.elements())) {
      for (DType dtype : kTensorTypes) {
        const Tensor x = HostTensor(shape, dtype, c.values);
        for (DType to : kWireTypes) {
          SCOPED_TRACE(
              absl::StrCat(c.name, " ", shape.ToString(), " of ", Name(dtype), " as ", Name(to)));
          ExpectTwins(x, CastPayloadBytes(to, x.elements()), EncodeTo(to), DecodeFrom(to));
        }
      }
    }
  }
}

TEST(CudaCastTest, EveryCodecHasTheCpusBytes) {
  for (CodecKind kind : {CodecKind::kNone, CodecKind::kFp16, CodecKind::kBf16}) {
    CodecSpec spec;
    spec.kind = kind;
    for (const NamedValues& c : CasesOf(35)) ExpectTwins(spec, {5, 7}, c);
  }
}

TEST(CudaCastTest, EveryHalfDecodesToTheCpusBits) {
  std::vector<uint8_t> payload(2 + 2 * 65536);
  for (int half = 0; half < 65536; ++half) {
    payload[2 + 2 * half] = static_cast<uint8_t>(half);
    payload[3 + 2 * half] = static_cast<uint8_t>(half >> 8);
  }
  for (int exponent : {-113, -1, 0, 15, 100, 126}) {
    SCOPED_TRACE(exponent);
    payload[0] = static_cast<uint8_t>(exponent);
    payload[1] = static_cast<uint8_t>(exponent >> 8);
    for (DType dtype : kTensorTypes) {
      ExpectSameDecoding(payload, {65536}, dtype, DecodeFrom(DType::kF16));
    }
  }
}

// Tests all upper halves of floats, with lower halves around the ties of both short types.
TEST(CudaCastTest, FloatsOfEveryMagnitudeNarrowToTheCpusBits) {
  for (uint32_t low : {0u, 1u, 0x0FFFu, 0x1000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
    std::vector<float> values(65536);
    for (uint32_t i = 0; i < 65536; ++i) values[i] = FloatOf(i << 16 | low);
    const Tensor x = HostTensor({65536}, DType::kF32, values);
    for (DType to : {DType::kBF16, DType::kF16}) {
      ExpectSameEncoding(x, CastPayloadBytes(to, 65536), EncodeTo(to));
    }
    for (float& value : values) {
      if (!(std::fabs(value) <= 70000.0f)) value = 0;
    }
    ExpectSameEncoding(HostTensor({65536}, DType::kF32, values), 2 + 2 * 65536,
                       EncodeTo(DType::kF16));
  }
}

TEST(CudaCastTest, UnalignedTensorsAreFine) {
  const Tensor x = HostTensor({4099}, DType::kBF16, NormalValues(4099));
  const Tensor on_gpu = On(GpuTwin().device, x);
  for (DType to : kWireTypes) {
    TensorView from = x.view(), from_gpu = on_gpu.view();
    from.dims[0] = from_gpu.dims[0] = 4096;
    from.data = static_cast<uint16_t*>(from.data) + 3;
    from_gpu.data = static_cast<uint16_t*>(from_gpu.data) + 3;
    std::vector<uint8_t> expected(CastPayloadBytes(to, 4096)), met(expected.size());
    size_t bytes = 0;
    ASSERT_TRUE(
        EncodeTo(to)(CpuCodecKernels(), from, {expected.data(), expected.size(), &bytes}).ok());
    ASSERT_TRUE(EncodeTo(to)(GpuTwin().kernels, from_gpu, {met.data(), met.size(), &bytes}).ok());
    EXPECT_EQ(expected, met) << Name(to);
  }
}

TEST(CudaCastTest, DamagedPayloadsMeetTheCpusVerdict) {
  const Shape shape = {3, 7};
  for (DType dtype : kTensorTypes) {
    const Tensor x = HostTensor(shape, dtype, NormalValues(21));
    for (DType to : kWireTypes) {
      const Encoded encoded =
          ExpectSameEncoding(x, CastPayloadBytes(to, x.elements()), EncodeTo(to));
      ExpectSameVerdictsWhenCut(encoded.payload, shape, dtype, DecodeFrom(to));
      ExpectSameVerdictsWhenDamaged(encoded.payload, shape, dtype, DecodeFrom(to));
    }
  }
}

TEST(CudaCastTest, TooLittlePayloadMemoryIsTheCpusError) {
  const Tensor x = HostTensor({9}, DType::kF32, NormalValues(9));
  for (DType to : kWireTypes) {
    const Encoded encoded =
        ExpectSameEncoding(x, CastPayloadBytes(to, x.elements()) - 1, EncodeTo(to));
    EXPECT_FALSE(encoded.error.ok());
  }
}

}  // namespace
}  // namespace thinwire
