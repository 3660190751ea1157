#include <gtest/gtest.h>

#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

CodecSpec SpecOf(Range range, uint32_t bits) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.range = range;
  spec.bits = bits;
  return spec;
}

constexpr Range kRanges[] = {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint};

// Returns `spec` with each of these scopes.
std::vector<CodecSpec> Scoped(const CodecSpec& spec) {
  std::vector<CodecSpec> specs;
  for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kToken, Scope::kChannel}) {
    specs.push_back(spec);
    specs.back().scope = scope;
  }
  for (uint32_t group : {1, 3, 64, 1000, 5000}) {
    specs.push_back(spec);
    specs.back().scope = Scope::kGroup;
    specs.back().group = group;
  }
  return specs;
}

// Returns both roundings, and both settings of zero.
std::vector<CodecSpec> SpecsOf(Range range, uint32_t bits) {
  std::vector<CodecSpec> specs;
  for (const CodecSpec& scoped : Scoped(SpecOf(range, bits))) {
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      for (Zero zero : {Zero::kFree, Zero::kOnGrid}) {
        if (zero == Zero::kOnGrid && range != Range::kMinMax) continue;
        specs.push_back(scoped);
        specs.back().rounding = rounding;
        specs.back().zero = zero;
      }
    }
  }
  return specs;
}

TEST(CudaUniformTest, EveryNumberOfBitsHasTheCpusBytes) {
  const Shape shape = {2, 3, 5, 37};
  const NamedValues normal{"normal", NormalValues(shape.elements())};
  for (Range range : kRanges) {
    for (uint32_t bits = range == Range::kMaxAbs ? 2 : 1; bits <= 8; ++bits) {
      for (const CodecSpec& spec : SpecsOf(range, bits)) {
        ExpectTwins(spec, shape, normal);
      }
    }
  }
}

TEST(CudaUniformTest, EveryShapeHasTheCpusBytes) {
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{1}, Shape{2, 0, 3}, Shape{127}, Shape{129, 1}, Shape{1, 513},
        Shape{2, 9, 9, 64}, Shape{4, 1025}, Shape{3, 2049}, Shape{3, 4096}}) {
    const NamedValues normal{"normal", NormalValues(shape.elements())};
    for (Range range : kRanges) {
      for (uint32_t bits : {3, 8}) {
        for (const CodecSpec& spec : Scoped(SpecOf(range, bits))) {
          ExpectTwins(spec, shape, normal);
        }
      }
    }
  }
}

TEST(CudaUniformTest, SpecialValuesHaveTheCpusBytesAndErrors) {
  const Shape shape = {3, 5, 33};
  for (const NamedValues& c : CasesOf(shape.elements())) {
    for (Range range : kRanges) {
      for (const CodecSpec& spec : SpecsOf(range, 4)) {
        ExpectTwins(spec, shape, c);
      }
    }
  }
}

TEST(CudaUniformTest, LargeTensorsHaveTheCpusBytes) {
  const Shape images = {2, 28, 28, 67}, odd = {3, 33333};
  for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel}) {
    for (Range range : kRanges) {
      CodecSpec spec = SpecOf(range, 5);
      spec.scope = scope;
      spec.rounding = Rounding::kStochastic;
      ExpectTwins(spec, images, DType::kF32, {"normal", NormalValues(images.elements())});
    }
    CodecSpec spec = SpecOf(Range::kMinMax, 8);
    spec.scope = scope;
    ExpectTwins(spec, odd, DType::kBF16, {"normal", NormalValues(odd.elements())});
  }
}

// Tests scopes that have a block each, because they fill a card of any usual size.
TEST(CudaUniformTest, ScopesOfBlocksHaveTheCpusBytes) {
  const Shape samples = {210, 16384}, groups = {210 * 20480 - 4097};
  NamedValues values{"normal", NormalValues(groups.elements())};
  values.values[7] = INFINITY;
  CodecSpec spec = SpecOf(Range::kMaxAbs, 4);
  spec.scope = Scope::kGroup;
  spec.group = 20480;
  ExpectTwins(spec, groups, DType::kF32, values);
  values.values[7] = 7;
  ExpectTwins(spec, groups, DType::kBF16, values);
  spec.rounding = Rounding::kStochastic;
  ExpectTwins(spec, groups, DType::kF32, values);
  values.values.resize(samples.elements());
  spec = SpecOf(Range::kMinMax, 3);
  spec.scope = Scope::kSample;
  ExpectTwins(spec, samples, DType::kF32, values);
  spec.zero = Zero::kOnGrid;
  ExpectTwins(spec, samples, DType::kF32, values);
}

TEST(CudaUniformTest, UnalignedTensorsAreFine) {
  const int64_t n = 5000;
  const Tensor x = HostTensor({n + 3}, DType::kF32, NormalValues(n + 3));
  const Tensor on_gpu = On(GpuTwin().device, x);
  TensorView from = x.view(), from_gpu = on_gpu.view();
  from.dims[0] = from_gpu.dims[0] = n;
  from.data = static_cast<float*>(from.data) + 3;
  from_gpu.data = static_cast<float*>(from_gpu.data) + 3;
  for (Range range : kRanges) {
    for (const CodecSpec& spec : Scoped(SpecOf(range, 7))) {
      SCOPED_TRACE(spec.ToString());
      std::vector<uint8_t> expected(Capacity(spec, {n})), met(expected.size());
      size_t bytes = 0;
      ASSERT_TRUE(
          EncodeBy(spec)(CpuCodecKernels(), from, {expected.data(), expected.size(), &bytes}).ok());
      ASSERT_TRUE(
          EncodeBy(spec)(GpuTwin().kernels, from_gpu, {met.data(), met.size(), &bytes}).ok());
      EXPECT_EQ(expected, met);
    }
  }
}

TEST(CudaUniformTest, DamagedPayloadsMeetTheCpusVerdict) {
  const Shape shape = {3, 7};
  const Tensor x = HostTensor(shape, DType::kF32, NormalValues(shape.elements()));
  for (Range range : kRanges) {
    for (Scope scope : {Scope::kTensor, Scope::kToken, Scope::kChannel}) {
      CodecSpec spec = SpecOf(range, 3);
      spec.scope = scope;
      SCOPED_TRACE(spec.ToString());
      const Encoded encoded = ExpectSameEncoding(x, Capacity(spec, shape), EncodeBy(spec));
      ExpectSameVerdictsWhenCut(encoded.payload, shape, DType::kF32, DecodeBy(spec));
      ExpectSameVerdictsWhenDamaged(encoded.payload, shape, DType::kF32, DecodeBy(spec));
    }
  }
}

TEST(CudaUniformTest, DamagedConstantsMeetTheCpusVerdict) {
  const Shape shape = {3, 7};
  const CodecSpec spec = SpecOf(Range::kFixedPoint, 4);
  const Tensor x = HostTensor(shape, DType::kBF16, std::vector<float>(21, -1.5f));
  const Encoded encoded = ExpectSameEncoding(x, Capacity(spec, shape), EncodeBy(spec));
  ASSERT_EQ(encoded.payload.size(), kConstantTensorBytes);
  ExpectSameVerdictsWhenCut(encoded.payload, shape, DType::kBF16, DecodeBy(spec));
  ExpectSameVerdictsWhenDamaged(encoded.payload, shape, DType::kBF16, DecodeBy(spec));
}

TEST(CudaUniformTest, TooLittlePayloadMemoryIsTheCpusError) {
  const Tensor x = HostTensor({9}, DType::kF32, NormalValues(9));
  for (Range range : kRanges) {
    const CodecSpec spec = SpecOf(range, 4);
    EXPECT_FALSE(ExpectSameEncoding(x, Capacity(spec, {9}) - 1, EncodeBy(spec)).error.ok());
  }
}

}  // namespace
}  // namespace thinwire
