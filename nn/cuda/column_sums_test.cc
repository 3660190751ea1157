#include "nn/cuda/column_sums.h"

#include <memory>
#include <utility>
#include <vector>

#include "nn/cuda/device_testing.h"
#include "nn/cuda/kernels.h"

namespace thinwire::cuda {
namespace {

// Returns memory with these sums of tiles.
std::unique_ptr<CudaScratch> Memory(const std::vector<double>& sums) {
  auto memory = std::make_unique<CudaScratch>(OwnDevice());
  const size_t bytes = sums.size() * sizeof(double);
  EXPECT_TRUE(memory->Reserve(bytes).ok());
  EXPECT_TRUE(OwnDevice()->CopyFromHost(memory->as<void>(), sums.data(), bytes).ok());
  return memory;
}

// Sums of tiles that have no rounding errors: small integers.
std::vector<double> Integers(const TileSumsShape& shape, int first) {
  std::vector<double> sums(shape.bytes() / sizeof(double));
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>((first + i * 7) % 13);
  return sums;
}

// Returns the k-th sum of the first columns, added to 1.
Floats Total(const TileSumsShape& shape, const std::vector<double>& sums, int64_t k,
             int64_t channels) {
  Floats totals(channels, 1);
  for (int64_t tile = 0; tile < shape.tiles; ++tile) {
    for (int64_t c = 0; c < channels; ++c) {
      totals[c] += static_cast<float>(sums[(tile * shape.sums + k) * shape.columns + c]);
    }
  }
  return totals;
}

TEST(ColumnSumsTest, EachSumGoesToItsGradientAndNoneToNull) {
  for (const TileSumsShape& shape :
       {TileSumsShape{1, 1, 1}, TileSumsShape{3, 2, 9}, TileSumsShape{300, 2, 70}}) {
    for (const bool has_second : {false, true}) {
      const int64_t channels = (shape.columns + 1) / 2;
      const std::vector<double> sums = Integers(shape, 3);
      Side side = OwnSide();
      float* const first = side.Of(Floats(channels, 1));
      float* const second = has_second ? side.Of(Floats(channels, 1)) : nullptr;
      ColumnSums added(OwnDevice());
      if (shape.sums == 1) {
        ASSERT_TRUE(added.Add(shape, Memory(sums), channels, {first}).ok());
      } else {
        ASSERT_TRUE(added.Add(shape, Memory(sums), channels, {first, second}).ok());
      }
      EXPECT_EQ(side.Read(first, channels), Total(shape, sums, 0, channels));
      if (shape.sums == 1 || !has_second) continue;
      EXPECT_EQ(side.Read(second, channels), Total(shape, sums, 1, channels));
    }
  }
}

TEST(ColumnSumsTest, JoinedSumsWaitAndAreAddedOnceEach) {
  constexpr int kMany = 190;  // more than one launch takes
  ColumnSums added(OwnDevice());
  Side side = OwnSide();
  std::vector<float*> gradients;
  std::vector<Floats> want;
  added.Join();
  for (int i = 0; i < kMany; ++i) {
    const TileSumsShape shape = {1 + i % 40, 1, 1 + i * 5 % 33};
    const std::vector<double> sums = Integers(shape, i);
    gradients.push_back(side.Of(Floats(shape.columns, 1)));
    want.push_back(Total(shape, sums, 0, shape.columns));
    ASSERT_TRUE(added.Add(shape, Memory(sums), shape.columns, {gradients[i]}).ok());
  }
  EXPECT_EQ(side.Read(gradients[0], 1), Floats{1}) << "it was not put off";
  ASSERT_TRUE(added.Finish().ok());
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(side.Read(gradients[i], static_cast<int64_t>(want[i].size())), want[i]) << i;
  }
}

TEST(ColumnSumsTest, AGradientThatIsAddedToTwiceHasBothSums) {
  const TileSumsShape shape = {5, 1, 20};
  ColumnSums added(OwnDevice());
  Side side = OwnSide();
  float* const gradient = side.Of(Floats(20, -1));
  added.Join();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(added.Add(shape, Memory(Integers(shape, 3)), 20, {gradient}).ok());
  }
  ASSERT_TRUE(added.Finish().ok());
  Floats want = Total(shape, Integers(shape, 3), 0, 20);
  for (float& value : want) value = 2 * (value - 1) - 1;
  EXPECT_EQ(side.Read(gradient, 20), want);
}

TEST(ColumnSumsTest, TooMuchThatWaitsIsAddedBeforeTheEnd) {
  const int64_t tiles = static_cast<int64_t>(ColumnSums::kMostWaiting / sizeof(double) / 64) + 1;
  const TileSumsShape shape = {tiles, 1, 64};
  ColumnSums added(OwnDevice());
  Side side = OwnSide();
  float* const gradient = side.Of(Floats(64, 0));
  added.Join();
  const std::vector<double> ones(static_cast<size_t>(64 * tiles), 1);
  ASSERT_TRUE(added.Add(shape, Memory(ones), 64, {gradient}).ok());
  EXPECT_EQ(side.Read(gradient, 64), Floats(64, static_cast<float>(tiles)));
}

TEST(ColumnSumsTest, WhatAFailedPassPutOffIsForgotten) {
  const TileSumsShape shape = {2, 1, 4};
  ColumnSums added(OwnDevice());
  Side side = OwnSide();
  float* const gradient = side.Of(Floats(4, 1));
  added.Join();
  ASSERT_TRUE(added.Add(shape, Memory(Integers(shape, 1)), 4, {gradient}).ok());
  added.Join();
  ASSERT_TRUE(added.Finish().ok());
  EXPECT_EQ(side.Read(gradient, 4), Floats(4, 1));
}

// Calls of biases and layer norms, put off or not.
class Gradients {
 public:
  Gradients() {
    const Shape of_x({kRows, kFeatures});
    x_ = side_.Of(DType::kBF16, of_x, RandomFloats(of_x.elements(), 1));
    norm_.x = norm_.dy = x_;
    norm_.dx = side_.Unwritten(DType::kBF16, of_x);
    norm_.scale = side_.Of(RandomFloats(kFeatures, 2));
    norm_.mean = side_.Of(RandomFloats(kRows, 3));
    norm_.rstd = side_.Of(RandomFloats(kRows, 4));
    norm_.dscale = side_.Of(RandomFloats(kFeatures, 5));
    norm_.dbias = side_.Of(RandomFloats(kFeatures, 6));
    bias_ = side_.Of(RandomFloats(kFeatures, 7));
  }
  void Add(ColumnSums* sums) {
    ASSERT_TRUE(NormalizeRowsBackward(OwnDevice(), norm_, sums).ok());
    ASSERT_TRUE(AddColumnSums(OwnDevice(), x_, kFeatures, sums, bias_).ok());
  }
  Outputs Read() {
    return {{"dscale", side_.Read(norm_.dscale, kFeatures)},
            {"dbias", side_.Read(norm_.dbias, kFeatures)},
            {"bias", side_.Read(bias_, kFeatures)}};
  }

 private:
  static constexpr int64_t kRows = 700, kFeatures = 264;

  Side side_ = OwnSide();
  TensorView x_;
  LayerNormBackward norm_;
  float* bias_;
};

TEST(ColumnSumsTest, JoinedGradientsHaveTheBitsOfSingleOnes) {
  Gradients single, joined;
  ColumnSums sums(OwnDevice());
  single.Add(&sums);
  single.Add(&sums);
  sums.Join();
  joined.Add(&sums);
  joined.Add(&sums);
  ASSERT_TRUE(sums.Finish().ok());
  ExpectNear(single.Read(), joined.Read(), kSameBits);
}

}  // namespace
}  // namespace thinwire::cuda
