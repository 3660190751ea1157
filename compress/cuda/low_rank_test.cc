#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compress/cuda/twins_testing.h"
#include "compress/low_rank_matrices.h"

namespace thinwire {
namespace {

CodecSpec SpecOf(uint32_t rank, bool per_sample = false) {
  CodecSpec spec;
  spec.kind = CodecKind::kLowRank;
  spec.rank = rank;
  spec.per_sample = per_sample;
  return spec;
}

struct Case {
  Shape shape;
  uint32_t rank;
  bool per_sample = false;
};

// Returns rows and columns that are and are not multiples of tiles, for one matrix and several.
std::vector<Case> Cases() {
  return {{{2, 2}, 1},    {{9, 3}, 2},           {{37, 5}, 4},
          {{130, 8}, 3},  {{4, 6, 6, 64}, 4},    {{700, 12}, 5},
          {{50, 33}, 9},  {{3, 40, 7}, 2, true}, {{2, 9, 5, 16}, 4, true},
          {{40, 600}, 6}, {{1100, 4}, 1}};
}

std::string Spelled(const Case& c, DType dtype) {
  return absl::StrCat(c.shape.ToString(), " rank ", c.rank, " ", c.per_sample, " ", Name(dtype));
}

// Returns ||x - decoded|| / ||x||.
double ErrorOf(const CodecSpec& spec, const Tensor& x, const std::vector<uint8_t>& payload) {
  Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, x.shape());
  EXPECT_TRUE(CpuCodecKernels()
                  ->Decode({payload.data(), payload.size()}, spec, KernelContext{}, y.view())
                  .ok());
  CodecKernels::Sums sums;
  EXPECT_TRUE(CpuCodecKernels()->Compare(x.view(), y.view(), &sums).ok());
  return sums.x == 0 ? std::sqrt(sums.y) : std::sqrt(sums.difference / sums.x);
}

TEST(CudaLowRankTest, DecodesToTheCpusBits) {
  for (const Case& c : Cases()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(Spelled(c, dtype));
      const CodecSpec spec = SpecOf(c.rank, c.per_sample);
      const Tensor x = HostTensor(c.shape, dtype, NormalValues(c.shape.elements()));
      const Encoded encoded = EncodeOn(CpuTwin(), x, Capacity(spec, c.shape), EncodeBy(spec));
      ASSERT_TRUE(encoded.error.ok()) << encoded.error.message;
      ExpectSameDecoding(encoded.payload, c.shape, dtype, DecodeBy(spec));
    }
  }
}

TEST(CudaLowRankTest, JudgesDamagedPayloadsAsTheCpuDoes) {
  const CodecSpec spec = SpecOf(2, /*per_sample=*/true);
  const Shape shape = {2, 5, 3};
  const Encoded encoded =
      EncodeOn(CpuTwin(), HostTensor(shape, DType::kF32, NormalValues(shape.elements())),
               Capacity(spec, shape), EncodeBy(spec));
  ExpectSameVerdictsWhenCut(encoded.payload, shape, DType::kF32, DecodeBy(spec));
  ExpectSameVerdictsWhenDamaged(encoded.payload, shape, DType::kF32, DecodeBy(spec));
  ExpectSameVerdictsWhenDamaged(encoded.payload, shape, DType::kBF16, DecodeBy(spec));
}

TEST(CudaLowRankTest, RefusesFactorsThatAreNotFiniteWhereverTheyStand) {
  const CodecSpec spec = SpecOf(1);
  const Shape shape = {5, 6};
  for (const float value : {NAN, INFINITY, FLT_MAX}) {
    for (size_t i = 0; i < 5 + 6; ++i) {
      for (const float other : {0.0f, 1.0f, -2.0f}) {
        std::vector<float> factors(5 + 6, other);
        factors[i] = value;
        std::vector<uint8_t> payload(4 * factors.size());
        std::memcpy(payload.data(), factors.data(), payload.size());
        ExpectSameDecoding(payload, shape, DType::kF32, DecodeBy(spec));
      }
    }
  }
}

// Tests that factors are the CPU's except for fp64 sums in another order, of which rounding to fp32
// leaves a last bit here and there.
TEST(CudaLowRankTest, EncodesToTheCpusFactors) {
  for (const Case& c : Cases()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(Spelled(c, dtype));
      const CodecSpec spec = SpecOf(c.rank, c.per_sample);
      const Tensor x = HostTensor(c.shape, dtype, NormalValues(c.shape.elements()));
      const size_t bytes = Capacity(spec, c.shape);
      const Encoded expected = EncodeOn(CpuTwin(), x, bytes, EncodeBy(spec));
      const Encoded met = EncodeOn(GpuTwin(), x, bytes, EncodeBy(spec));
      ASSERT_TRUE(met.error.ok()) << met.error.message;
      ASSERT_EQ(met.payload.size(), expected.payload.size());
      for (size_t i = 0; i < bytes; i += 4) {
        float a, b;
        std::memcpy(&a, &expected.payload[i], 4);
        std::memcpy(&b, &met.payload[i], 4);
        ASSERT_NEAR(a, b, 4e-6 * (std::fabs(a) + 1)) << "float " << i / 4;
      }
      EXPECT_NEAR(ErrorOf(spec, x, met.payload), ErrorOf(spec, x, expected.payload), 1e-6);
    }
  }
}

// Tests the two products by themselves, as replicas take them.
TEST(CudaLowRankTest, ProjectsAndReprojectsToTheCpusFactors) {
  const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 4e-6 * (std::fabs(a[i]) + 1)) << "float " << i;
    }
  };
  for (const Case& c : Cases()) {
    if (c.per_sample) continue;
    SCOPED_TRACE(Spelled(c, DType::kF32));
    const CodecSpec spec = SpecOf(c.rank);
    const LowRankMatrices m = LowRankMatricesOf(c.shape, spec);
    const Tensor x = HostTensor(c.shape, DType::kF32, NormalValues(c.shape.elements()));
    const Tensor there = On(GpuTwin().device, x);
    std::vector<float> start(m.q_floats(), 0.5f), p(m.p_floats()), met_p(p), q(start), met_q(q);
    for (size_t i = 0; i < start.size(); ++i) start[i] += static_cast<float>(i % 7);
    float largest = 0, met = 0;
    ASSERT_TRUE(CpuCodecKernels()->Project(spec, x.view(), start.data(), p.data(), &largest).ok());
    ASSERT_TRUE(
        GpuTwin().kernels->Project(spec, there.view(), start.data(), met_p.data(), &met).ok());
    EXPECT_EQ(met, largest);
    near(p, met_p);
    ASSERT_TRUE(CpuCodecKernels()->Reproject(spec, x.view(), largest, p.data(), q.data()).ok());
    ASSERT_TRUE(
        GpuTwin().kernels->Reproject(spec, there.view(), largest, p.data(), met_q.data()).ok());
    near(q, met_q);
  }
}

TEST(CudaLowRankTest, ProjectingRefusesWhatTheCpuRefuses) {
  const CodecSpec spec = SpecOf(2);
  std::vector<NamedValues> all = ExtremeCases(360);
  all.push_back({"large everywhere", std::vector<float>(360, 2e38f)});
  for (const NamedValues& named : all) {
    SCOPED_TRACE(named.name);
    const Tensor x = HostTensor({60, 6}, DType::kF32, named.values);
    std::vector<float> p(120), met_p(120);
    float largest = 0;
    const Tensor there = On(GpuTwin().device, x);
    ExpectSameError(
        CpuCodecKernels()->Project(spec, x.view(), nullptr, p.data(), &largest),
        GpuTwin().kernels->Project(spec, there.view(), nullptr, met_p.data(), &largest));
  }
}

TEST(CudaLowRankTest, ApproximatesAsWellAsTheCpuAtEverySize) {
  const CodecSpec spec = SpecOf(3);
  const Shape shape = {60, 10};
  for (const NamedValues& named : FiniteCases(600)) {
    SCOPED_TRACE(named.name);
    const Tensor x = HostTensor(shape, DType::kF32, named.values);
    const Encoded expected = EncodeOn(CpuTwin(), x, Capacity(spec, shape), EncodeBy(spec));
    const Encoded met = EncodeOn(GpuTwin(), x, Capacity(spec, shape), EncodeBy(spec));
    ExpectSameError(expected.error, met.error);
    if (!expected.error.ok()) continue;
    EXPECT_NEAR(ErrorOf(spec, x, met.payload), ErrorOf(spec, x, expected.payload), 1e-5);
  }
}

TEST(CudaLowRankTest, StartsFromTheFactorBefore) {
  const CodecSpec spec = SpecOf(2, /*per_sample=*/true);
  const Shape shape = {3, 50, 20};
  const Tensor x = HostTensor(shape, DType::kF32, NormalValues(shape.elements()));
  const size_t bytes = Capacity(spec, shape), p = 50 * 2, q = 20 * 2;
  std::vector<float> start;
  double error = 1;
  for (int step = 0; step < 6; ++step) {
    const Encoded met =
        EncodeOn(GpuTwin(), x, bytes, EncodeBy(spec, nullptr, step == 0 ? nullptr : start.data()));
    const Encoded expected =
        EncodeOn(CpuTwin(), x, bytes, EncodeBy(spec, nullptr, step == 0 ? nullptr : start.data()));
    EXPECT_NEAR(ErrorOf(spec, x, met.payload), ErrorOf(spec, x, expected.payload), 1e-6);
    EXPECT_LT(ErrorOf(spec, x, met.payload), error);
    error = ErrorOf(spec, x, met.payload);
    start.resize(3 * q);
    for (size_t matrix = 0; matrix < 3; ++matrix) {
      std::memcpy(start.data() + matrix * q, &met.payload[4 * (matrix * (p + q) + p)], 4 * q);
    }
  }
}

// Tests a matrix of lower rank than asked for: Gram-Schmidt leaves zeros in the other columns.
TEST(CudaLowRankTest, ColumnsThatVanishAreZeros) {
  const CodecSpec spec = SpecOf(3);
  std::vector<float> values(40 * 8);
  for (int i = 0; i < 40 * 8; ++i) values[i] = static_cast<float>((i / 8 + 1) * (i % 8 - 3));
  const Tensor x = HostTensor({40, 8}, DType::kF32, values);
  const Encoded met = EncodeOn(GpuTwin(), x, Capacity(spec, {40, 8}), EncodeBy(spec));
  for (int column = 1; column < 3; ++column) {
    for (int row = 0; row < 40 + 8; ++row) {
      float factor;
      std::memcpy(&factor, &met.payload[4 * (3 * row + column)], 4);
      EXPECT_EQ(factor, 0) << row << " " << column;
    }
  }
  EXPECT_LT(ErrorOf(spec, x, met.payload), 1e-6);
}

TEST(CudaLowRankTest, RefusesWhatTheCpuRefuses) {
  const Shape shape = {2, 30, 6};
  const int64_t n = shape.elements();
  for (const bool per_sample : {false, true}) {
    const CodecSpec spec = SpecOf(2, per_sample);
    const size_t bytes = Capacity(spec, shape);
    std::vector<NamedValues> all = ExtremeCases(n);
    all.push_back({"large everywhere", std::vector<float>(n, 2e38f)});
    for (const NamedValues& named : all) {
      SCOPED_TRACE(named.name);
      const Tensor x = HostTensor(shape, DType::kF32, named.values);
      const Encoded expected = EncodeOn(CpuTwin(), x, bytes, EncodeBy(spec));
      const Encoded met = EncodeOn(GpuTwin(), x, bytes, EncodeBy(spec));
      ExpectSameError(expected.error, met.error);
    }
    const Tensor x = HostTensor(shape, DType::kF32, NormalValues(n));
    ExpectSameEncoding(x, bytes - 1, EncodeBy(spec));
    ExpectSameEncoding(x, bytes, EncodeBy(SpecOf(6, per_sample)));
  }
  ExpectTwins(HostTensor({0, 30, 6}, DType::kF32, {}), 0, EncodeBy(SpecOf(2)), DecodeBy(SpecOf(2)));
}

}  // namespace
}  // namespace thinwire
