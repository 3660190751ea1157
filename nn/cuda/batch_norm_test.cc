// Sums run in another order than on the CPU, in fp32 over at most 64 * 32 numbers and then in fp64.
// So statistics differ by a few units in the last place, and results by that times the number of
// operations: 1e-5 of values around 1.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

struct Variant {
  bool relu, residual;
};

class BatchNormTest : public testing::TestWithParam<std::tuple<DType, Shape, Variant>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  Shape shape() const { return std::get<1>(GetParam()); }
  Variant variant() const { return std::get<2>(GetParam()); }
  int64_t channels() const { return shape()[shape().rank() - 1]; }
  Floats PerChannel(uint64_t seed, float mean) const {
    return RandomFloats(channels(), seed, mean, 0.1f);
  }
  TensorView Tensor(Side* side, uint64_t seed) const {
    return side->Of(type(), shape(), RandomFloats(shape().elements(), seed, 0.5f, 2.0f));
  }

  // Fills in everything but the statistics.
  template <typename Arguments>
  Arguments Inputs(Side* side) const {
    Arguments a;
    a.x = Tensor(side, 1);
    if (variant().residual) a.residual = Tensor(side, 2);
    a.y = side->Unwritten(type(), shape());
    a.scale = side->Of(PerChannel(3, 1));
    a.bias = side->Of(PerChannel(4, 0.2f));
    a.running_mean = side->Of(PerChannel(5, 0.5f));
    a.running_var = side->Of(PerChannel(6, 4));
    a.relu = variant().relu;
    return a;
  }
};

TEST_P(BatchNormTest, ForwardIsTheCpus) {
  ExpectTwins(Rounded(type(), 1e-5, 1e-5), [&](Side* side) -> Outputs {
    auto a = Inputs<BatchNormForward>(side);
    a.mean = side->Unwritten(channels());
    a.rstd = side->Unwritten(channels());
    EXPECT_TRUE((*side)->NormalizeBatch(a).ok());
    return {{"mean", side->Read(a.mean, channels())},
            {"rstd", side->Read(a.rstd, channels())},
            {"running mean", side->Read(a.running_mean, channels())},
            {"running variance", side->Read(a.running_var, channels())},
            {"y", side->Read(a.y)}};
  });
}

// Each element is rounded alike, so all bits are equal.
TEST_P(BatchNormTest, InferenceIsTheCpusToTheBit) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    const auto a = Inputs<BatchNormForward>(side);
    EXPECT_TRUE((*side)->NormalizeBatch(a).ok());
    return {{"y", side->Read(a.y)}};
  });
}

// Backward starts from given statistics, so that the ReLU's mask is the same on both sides. dscale
// and dbias are sums over all pixels, added to what was there.
TEST_P(BatchNormTest, BackwardIsTheCpus) {
  const double pixels = static_cast<double>(shape().elements() / channels());
  ExpectTwins(Rounded(type(), 1e-5, 2e-6 * std::sqrt(pixels) + 1e-5), [&](Side* side) -> Outputs {
    BatchNormBackward a;
    a.x = Tensor(side, 1);
    a.y = Tensor(side, 7);
    a.dy = Tensor(side, 8);
    a.dx = side->Unwritten(type(), shape());
    if (variant().residual) a.dresidual = side->Unwritten(type(), shape());
    a.scale = side->Of(PerChannel(3, 1));
    a.bias = side->Of(PerChannel(4, 0.2f));
    a.mean = side->Of(PerChannel(5, 0.5f));
    a.rstd = side->Of(PerChannel(6, 0.5f));
    a.dscale = side->Of(PerChannel(9, 100));
    a.dbias = side->Of(PerChannel(10, -100));
    a.relu = variant().relu;
    EXPECT_TRUE((*side)->NormalizeBatchBackward(a).ok());
    Outputs outputs = {{"dx", side->Read(a.dx)},
                       {"dscale", side->Read(a.dscale, channels())},
                       {"dbias", side->Read(a.dbias, channels())}};
    if (variant().residual) outputs.push_back({"dresidual", side->Read(a.dresidual)});
    a.dscale = a.dbias = nullptr;
    a.dx = side->Unwritten(type(), shape());
    EXPECT_TRUE((*side)->NormalizeBatchBackward(a).ok());
    outputs.push_back({"dx alone", side->Read(a.dx)});
    return outputs;
  });
}

// An addition in the pass has the bits of one before it.
TEST_P(BatchNormTest, AddsToDyAsAddDoesBeforeIt) {
  if (!variant().residual || !variant().relu) return;  // it adds nothing then
  for (const int64_t misaligned : {0, 1}) {
    Side side = DeviceSide(misaligned), cpu = CpuSide();
    const auto run = [&](Side* on, bool fused) -> Outputs {
      BatchNormBackward a;
      a.x = Tensor(on, 1);
      a.y = Tensor(on, 7);
      a.dy = Tensor(on, 8);
      a.addend = Tensor(on, 11);
      a.dx = on->Unwritten(type(), shape());
      a.dresidual = on->Unwritten(type(), shape());
      a.scale = on->Of(PerChannel(3, 1));
      a.bias = on->Of(PerChannel(4, 0.2f));
      a.mean = on->Of(PerChannel(5, 0.5f));
      a.rstd = on->Of(PerChannel(6, 0.5f));
      a.dscale = on->Of(PerChannel(9, 100));
      a.dbias = on->Of(PerChannel(10, -100));
      a.relu = true;
      if (!fused) {
        EXPECT_TRUE((*on)->Add(a.dy, a.addend, a.dy).ok());
        a.addend = TensorView();
      }
      EXPECT_TRUE((*on)->NormalizeBatchBackward(a).ok());
      return {{"dx", on->Read(a.dx)},
              {"dresidual", on->Read(a.dresidual)},
              {"dscale", on->Read(a.dscale, channels())},
              {"dbias", on->Read(a.dbias, channels())}};
    };
    ExpectNear(run(&side, /*fused=*/false), run(&side, /*fused=*/true), kSameBits);
    ExpectNear(run(&cpu, /*fused=*/false), run(&cpu, /*fused=*/true), kSameBits);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchNormTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                     testing::Values(Shape({2, 1, 1, 1}), Shape({3, 5, 7, 3}), Shape({5, 8, 8, 16}),
                                     Shape({2, 5, 5, 64}), Shape({5, 3, 3, 100}),
                                     Shape({4, 4, 4, 512}), Shape({7, 24}), Shape({1, 60, 60, 4})),
                     testing::Values(Variant{false, false}, Variant{true, false},
                                     Variant{false, true}, Variant{true, true})));

// One channel, whose rows fill every block and every thread's share of rows.
TEST(BatchNormLargeTest, ManyRows) {
  constexpr int64_t kRows = 5'000'001;
  const Floats values = RandomFloats(1000, 1, 3, 2);
  Floats x(kRows);
  for (int64_t i = 0; i < kRows; ++i) x[i] = values[i * 7919 % 1000];
  Side side = DeviceSide();
  BatchNormForward a;
  a.x = side.Of(DType::kF32, Shape({kRows, 1}), x);
  a.y = side.Unwritten(DType::kF32, Shape({kRows, 1}));
  a.scale = side.Of({1});
  a.bias = side.Of({0});
  a.running_mean = side.Of({0});
  a.running_var = side.Of({0});
  a.mean = side.Unwritten(1);
  a.rstd = side.Unwritten(1);
  a.momentum = 1;
  ASSERT_TRUE(side->NormalizeBatch(a).ok());
  double mean = 0, variance = 0;
  for (float v : x) mean += v / static_cast<double>(kRows);
  for (float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(kRows - 1);
  EXPECT_NEAR(side.Read(a.running_mean, 1)[0], mean, 1e-6);
  EXPECT_NEAR(side.Read(a.running_var, 1)[0], variance, 1e-6);
  const Floats y = side.Read(a.y);
  for (int64_t i : {int64_t{0}, kRows / 2, kRows - 1}) {
    EXPECT_NEAR(y[i], (x[i] - mean) / std::sqrt(variance), 1e-5);
  }
}

// E[x^2] - E[x]^2 in fp32 would leave nothing of a variance of 1e-2 around 1000.
TEST(BatchNormNumericsTest, ALargeMeanDoesNotCancelTheVariance) {
  constexpr int64_t kPixels = 40'000, kChannels = 8;
  const Floats x = RandomFloats(kPixels * kChannels, 1, 1000, 0.1f);
  Side side = DeviceSide();
  BatchNormForward a;
  a.x = side.Of(DType::kF32, Shape({kPixels, kChannels}), x);
  a.y = side.Unwritten(DType::kF32, Shape({kPixels, kChannels}));
  a.scale = side.Of(Floats(kChannels, 1));
  a.bias = side.Of(Floats(kChannels, 0));
  a.running_mean = side.Of(Floats(kChannels, 0));
  a.running_var = side.Of(Floats(kChannels, 0));
  a.mean = side.Unwritten(kChannels);
  a.rstd = side.Unwritten(kChannels);
  a.momentum = 1;
  ASSERT_TRUE(side->NormalizeBatch(a).ok());
  const Floats running = side.Read(a.running_var, kChannels);
  for (int64_t c = 0; c < kChannels; ++c) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < kPixels; ++i) mean += x[i * kChannels + c] / double{kPixels};
    for (int64_t i = 0; i < kPixels; ++i) {
      const double v = x[i * kChannels + c] - mean;
      variance += v * v / double{kPixels - 1};
    }
    EXPECT_NEAR(running[c], variance, 1e-5 * variance);
  }
}

TEST(BatchNormErrorTest, OneValueAChannelIsRefusedInTheCpusWords) {
  const auto normalize = [](Side side) {
    BatchNormForward a;
    a.x = side.Of(DType::kF32, Shape({1, 1, 1, 4}), Floats(4, 1));
    a.y = side.Unwritten(DType::kF32, Shape({1, 1, 1, 4}));
    a.mean = a.rstd = side.Unwritten(4);
    return ToStatus(side->NormalizeBatch(a));
  };
  EXPECT_EQ(normalize(DeviceSide()), normalize(CpuSide()));
  EXPECT_EQ(normalize(DeviceSide()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(BatchNormErrorTest, HalfOfABatchsStatisticsIsRefused) {
  const auto normalize = [](Side side) {
    BatchNormForward a;
    a.x = side.Of(DType::kF32, Shape({2, 1, 1, 4}), Floats(8, 1));
    a.y = side.Unwritten(DType::kF32, Shape({2, 1, 1, 4}));
    a.rstd = side.Unwritten(4);
    return ToStatus(side->NormalizeBatch(a));
  };
  const auto wanted = absl::InvalidArgumentError("batch norm: rstd without mean, want both");
  EXPECT_EQ(normalize(CpuSide()), wanted);
  EXPECT_EQ(normalize(DeviceSide()), wanted);
}

}  // namespace
}  // namespace thinwire
