// Sums along a row are fp32 on both sides, in different orders. They differ by a few units in the
// last place, and so do results: 1e-5 of values around 1.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

class LayerNormTest : public testing::TestWithParam<std::tuple<DType, bool, Shape>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  bool centred() const { return std::get<1>(GetParam()); }  // otherwise RMS norm
  Shape shape() const { return std::get<2>(GetParam()); }
  int64_t features() const { return shape()[shape().rank() - 1]; }
  int64_t rows() const { return shape().elements() / features(); }
};

TEST_P(LayerNormTest, ForwardIsTheCpus) {
  ExpectTwins(Rounded(type(), 1e-5, 1e-5), [&](Side* side) -> Outputs {
    LayerNormForward a;
    a.x = side->Of(type(), shape(), RandomFloats(shape().elements(), 1, 0.5f, 2));
    a.y = side->Unwritten(type(), shape());
    a.scale = side->Of(RandomFloats(features(), 2, 1, 0.1f));
    a.rstd = side->Unwritten(rows());
    a.centred = centred();
    if (centred()) a.bias = side->Of(RandomFloats(features(), 3));
    if (centred()) a.mean = side->Unwritten(rows());
    // The variance of one feature is 0, so rstd is 1 / sqrt(epsilon), which an epsilon of 1 keeps
    // moderate.
    if (features() == 1) a.epsilon = 1;
    EXPECT_TRUE((*side)->NormalizeRows(a).ok());
    Outputs outputs = {{"y", side->Read(a.y)}, {"rstd", side->Read(a.rstd, rows())}};
    if (centred()) outputs.push_back({"mean", side->Read(a.mean, rows())});
    return outputs;
  });
}

// dscale and dbias are sums over all rows, added to what was there.
TEST_P(LayerNormTest, BackwardIsTheCpus) {
  const double many = std::sqrt(static_cast<double>(std::max(rows(), features())));
  ExpectTwins(Rounded(type(), 1e-5, 2e-6 * many + 1e-5), [&](Side* side) -> Outputs {
    LayerNormBackward a;
    a.x = side->Of(type(), shape(), RandomFloats(shape().elements(), 1, 0.5f, 2));
    a.dy = side->Of(type(), shape(), RandomFloats(shape().elements(), 2));
    a.dx = side->Unwritten(type(), shape());
    a.scale = side->Of(RandomFloats(features(), 3, 1, 0.1f));
    a.centred = centred();
    if (centred()) a.mean = side->Of(RandomFloats(rows(), 4, 0.5f, 0.1f));
    a.rstd = side->Of(RandomFloats(rows(), 5, 0.5f, 0.1f));
    a.dscale = side->Of(RandomFloats(features(), 6, 100));
    if (centred()) a.dbias = side->Of(RandomFloats(features(), 7, -100));
    EXPECT_TRUE((*side)->NormalizeRowsBackward(a).ok());
    Outputs outputs = {{"dx", side->Read(a.dx)}, {"dscale", side->Read(a.dscale, features())}};
    if (centred()) outputs.push_back({"dbias", side->Read(a.dbias, features())});
    a.dscale = a.dbias = nullptr;
    a.dx = side->Unwritten(type(), shape());
    EXPECT_TRUE((*side)->NormalizeRowsBackward(a).ok());
    outputs.push_back({"dx alone", side->Read(a.dx)});
    return outputs;
  });
}

// An addition in a layer norm's pass has the bits of one before it, whatever the rows' length and
// place. So it does not matter where a cut lies.
TEST_P(LayerNormTest, AddsAsAddDoesBeforeItNormalises) {
  for (const int64_t misaligned : {0, 1}) {
    for (const bool in_place : {false, true}) {
      Side side = DeviceSide(misaligned), cpu = CpuSide();
      const auto run = [&](Side* on, bool fused) -> Outputs {
        LayerNormForward a;
        a.x = on->Of(type(), shape(), RandomFloats(shape().elements(), 1, 0.5f, 2));
        a.addend = on->Of(type(), shape(), RandomFloats(shape().elements(), 4, -1, 3));
        a.sum = in_place ? a.x : on->Unwritten(type(), shape());
        a.y = on->Unwritten(type(), shape());
        a.scale = on->Of(RandomFloats(features(), 2, 1, 0.1f));
        a.rstd = on->Unwritten(rows());
        a.centred = centred();
        if (centred()) a.bias = on->Of(RandomFloats(features(), 3));
        a.mean = on->Unwritten(rows());
        const TensorView sum = a.sum;
        if (!fused) {
          EXPECT_TRUE((*on)->Add(a.x, a.addend, sum).ok());
          a.x = sum;
          a.addend = a.sum = TensorView();
        }
        EXPECT_TRUE((*on)->NormalizeRows(a).ok());
        return {{"sum", on->Read(sum)},
                {"y", on->Read(a.y)},
                {"rstd", on->Read(a.rstd, rows())},
                {"mean", on->Read(a.mean, rows())}};
      };
      const Outputs got = run(&side, /*fused=*/true);
      ExpectNear(run(&side, /*fused=*/false), got, kSameBits);
      const Outputs of_cpu = run(&cpu, /*fused=*/true);
      ExpectNear(run(&cpu, /*fused=*/false), of_cpu, kSameBits);
      ExpectNear({of_cpu[0]}, {got[0]}, kSameBits);
    }
  }
}

TEST_P(LayerNormTest, AddsToItsGradientAsAddDoesBehindIt) {
  for (const int64_t misaligned : {0, 1}) {
    Side side = DeviceSide(misaligned), cpu = CpuSide();
    const auto run = [&](Side* on, bool fused) -> Outputs {
      LayerNormBackward a;
      a.x = on->Of(type(), shape(), RandomFloats(shape().elements(), 1, 0.5f, 2));
      a.dy = on->Of(type(), shape(), RandomFloats(shape().elements(), 2));
      a.dx = on->Unwritten(type(), shape());
      a.addend = on->Of(type(), shape(), RandomFloats(shape().elements(), 8));
      a.scale = on->Of(RandomFloats(features(), 3, 1, 0.1f));
      a.centred = centred();
      if (centred()) a.mean = on->Of(RandomFloats(rows(), 4, 0.5f, 0.1f));
      a.rstd = on->Of(RandomFloats(rows(), 5, 0.5f, 0.1f));
      a.dscale = on->Of(RandomFloats(features(), 6, 100));
      if (centred()) a.dbias = on->Of(RandomFloats(features(), 7, -100));
      const TensorView addend = a.addend;
      if (!fused) a.addend = TensorView();
      EXPECT_TRUE((*on)->NormalizeRowsBackward(a).ok());
      if (!fused) {
        EXPECT_TRUE((*on)->Add(a.dx, addend, a.dx).ok());
      }
      return {{"dx", on->Read(a.dx)}, {"dscale", on->Read(a.dscale, features())}};
    };
    ExpectNear(run(&side, /*fused=*/false), run(&side, /*fused=*/true), kSameBits);
    ExpectNear(run(&cpu, /*fused=*/false), run(&cpu, /*fused=*/true), kSameBits);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LayerNormTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16), testing::Bool(),
                     testing::Values(Shape({1, 1}), Shape({5, 3}), Shape({3, 7, 16}),
                                     Shape({1, 64}), Shape({70, 100}), Shape({2, 9, 768}),
                                     Shape({4, 1024}), Shape({3, 1025}), Shape({2, 1600}),
                                     Shape({1, 3000}), Shape({1500, 8}))));

TEST(LayerNormNumericsTest, NoBiasIsAsGoodAsZeros) {
  const Shape shape({7, 100});
  const auto run = [&](bool has_bias) -> Outputs {
    Side side = DeviceSide();
    LayerNormForward a;
    a.x = side.Of(DType::kF32, shape, RandomFloats(700, 1));
    a.y = side.Unwritten(DType::kF32, shape);
    a.scale = side.Of(RandomFloats(100, 2));
    if (has_bias) a.bias = side.Of(Floats(100));
    a.mean = side.Unwritten(7);
    a.rstd = side.Unwritten(7);
    EXPECT_TRUE(side->NormalizeRows(a).ok());
    LayerNormBackward b;
    b.x = a.x;
    b.dy = side.Of(DType::kF32, shape, RandomFloats(700, 3));
    b.dx = side.Unwritten(DType::kF32, shape);
    b.scale = a.scale;
    b.mean = a.mean;
    b.rstd = a.rstd;
    b.dscale = side.Of(Floats(100));
    if (has_bias) b.dbias = side.Of(Floats(100));
    EXPECT_TRUE(side->NormalizeRowsBackward(b).ok());
    return {{"y", side.Read(a.y)}, {"dx", side.Read(b.dx)}, {"dscale", side.Read(b.dscale, 100)}};
  };
  ExpectNear(run(true), run(false), kSameBits);
}

TEST(LayerNormNumericsTest, AConstantRowBecomesItsBias) {
  Side side = DeviceSide();
  LayerNormForward a;
  a.x = side.Of(DType::kF32, Shape({1, 40}), Floats(40, 7));
  a.y = side.Unwritten(DType::kF32, Shape({1, 40}));
  a.scale = side.Of(Floats(40, 2));
  a.bias = side.Of(Floats(40, 0.5f));
  a.mean = side.Unwritten(1);
  a.rstd = side.Unwritten(1);
  ASSERT_TRUE(side->NormalizeRows(a).ok());
  EXPECT_EQ(side.Read(a.y), Floats(40, 0.5f));
}

}  // namespace
}  // namespace thinwire
