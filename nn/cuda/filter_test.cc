#include "nn/cuda/filter.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "nn/cuda/device_testing.h"

namespace thinwire::cuda {
namespace {

constexpr FilterShape kShapes[] = {{1, 1, 1}, {64, 3, 49}, {5, 33, 9}, {300, 7, 1}, {2, 512, 9}};

// Calls use(index in [out, in, pixels], index in [out, pixels, in]).
template <typename Use>
void ForEach(const FilterShape& shape, const Use& use) {
  for (int64_t o = 0; o < shape.out; ++o) {
    for (int64_t i = 0; i < shape.in; ++i) {
      for (int64_t p = 0; p < shape.pixels; ++p) {
        use((o * shape.in + i) * shape.pixels + p, (o * shape.pixels + p) * shape.in + i);
      }
    }
  }
}

// Returns memory with random numbers of `type`, which a call takes; *values are the numbers.
std::unique_ptr<CudaScratch> Packed(Side* side, DType type, int64_t n, uint64_t seed,
                                    Floats* values) {
  const TensorView view = side->Of(type, Shape({n}), RandomFloats(n, seed));
  *values = side->Read(view);
  std::vector<char> bytes(n * SizeOf(type));
  auto memory = std::make_unique<CudaScratch>(OwnDevice());
  EXPECT_TRUE(memory->Reserve(bytes.size()).ok());
  EXPECT_TRUE(OwnDevice()->CopyToHost(bytes.data(), view.data, bytes.size()).ok());
  EXPECT_TRUE(OwnDevice()->CopyFromHost(memory->as<void>(), bytes.data(), bytes.size()).ok());
  return memory;
}

TEST(FilterTest, PacksChannelsLastAndRounds) {
  for (const FilterShape& shape : kShapes) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      Side side = OwnSide(), cpu = CpuSide();
      const int64_t n = shape.elements();
      const Floats weights = RandomFloats(n, 1);
      Floats want(n);
      ForEach(shape, [&](int64_t plain, int64_t packed) { want[packed] = weights[plain]; });
      const TensorView packed = side.Unwritten(type, Shape({n}));
      ASSERT_TRUE(Filters(OwnDevice()).Pack(shape, side.Of(weights), type, packed.data).ok());
      EXPECT_EQ(side.Read(packed), cpu.Read(cpu.Of(type, Shape({n}), want)));
    }
  }
}

TEST(FilterTest, AddsGradientsInTheParametersLayout) {
  for (const FilterShape& shape : kShapes) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      Side side = OwnSide();
      const int64_t n = shape.elements();
      const Floats before = RandomFloats(n, 2);
      Floats values;
      auto packed = Packed(&side, type, n, /*seed=*/1, &values);
      Floats want = before;
      ForEach(shape, [&](int64_t plain, int64_t from) { want[plain] += values[from]; });
      float* const gradient = side.Of(before);
      ASSERT_TRUE(Filters(OwnDevice()).AddGradient(shape, std::move(packed), type, gradient).ok());
      EXPECT_EQ(side.Read(gradient, n), want);
    }
  }
}

// More filters than one launch takes, of both types and several sizes.
constexpr int kMany = 230;
DType TypeOf(int i) { return i % 3 == 0 ? DType::kF32 : DType::kBF16; }
FilterShape ShapeOf(int i) { return {1 + i % 4, 1 + i * 7 % 300, i % 2 == 0 ? 1 : 9}; }

TEST(FilterTest, JoinedFiltersArePackedWhenTheyAreWanted) {
  Filters filters(OwnDevice());
  Side joined = OwnSide(), single = OwnSide();
  std::vector<TensorView> got, want;
  filters.Join();
  for (int i = 0; i < kMany; ++i) {
    const int64_t n = ShapeOf(i).elements();
    const Floats weights = RandomFloats(n, i);
    got.push_back(joined.Unwritten(TypeOf(i), Shape({n})));
    want.push_back(single.Unwritten(TypeOf(i), Shape({n})));
    ASSERT_TRUE(filters.Pack(ShapeOf(i), joined.Of(weights), TypeOf(i), got[i].data).ok());
    ASSERT_TRUE(
        Filters(OwnDevice()).Pack(ShapeOf(i), single.Of(weights), TypeOf(i), want[i].data).ok());
  }
  EXPECT_TRUE(std::isnan(joined.Read(got[0])[0])) << "it was not put off";
  ASSERT_TRUE(filters.FinishPacks().ok());
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(joined.Read(got[i]), single.Read(want[i])) << i;
  ASSERT_TRUE(filters.Finish().ok());
}

TEST(FilterTest, JoinedGradientsAreAddedOnceEach) {
  Filters filters(OwnDevice());
  Side side = OwnSide();
  std::vector<float*> gradients;
  std::vector<Floats> want;
  filters.Join();
  for (int i = 0; i < kMany; ++i) {
    const FilterShape shape = ShapeOf(i);
    const int64_t n = shape.elements();
    Floats values, sum(n, 1);
    auto packed = Packed(&side, TypeOf(i), n, i, &values);
    ForEach(shape, [&](int64_t plain, int64_t from) { sum[plain] += values[from]; });
    gradients.push_back(side.Of(Floats(n, 1)));
    want.push_back(sum);
    ASSERT_TRUE(filters.AddGradient(shape, std::move(packed), TypeOf(i), gradients[i]).ok());
  }
  EXPECT_EQ(side.Read(gradients[0], 1), Floats{1}) << "it was not put off";
  ASSERT_TRUE(filters.Finish().ok());
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(side.Read(gradients[i], ShapeOf(i).elements()), want[i]) << i;
  }
}

TEST(FilterTest, AGradientThatIsAddedToTwiceHasBothSums) {
  Filters filters(OwnDevice());
  Side side = OwnSide();
  const FilterShape shape = {2, 3, 9};
  float* const gradient = side.Of(Floats(shape.elements(), 1));
  Floats want(shape.elements(), 1);
  filters.Join();
  for (uint64_t seed : {1, 2}) {
    Floats values;
    auto packed = Packed(&side, DType::kBF16, shape.elements(), seed, &values);
    ForEach(shape, [&](int64_t plain, int64_t from) { want[plain] += values[from]; });
    ASSERT_TRUE(filters.AddGradient(shape, std::move(packed), DType::kBF16, gradient).ok());
  }
  ASSERT_TRUE(filters.Finish().ok());
  EXPECT_EQ(side.Read(gradient, shape.elements()), want);
}

TEST(FilterTest, WhatAFailedPassPutOffIsForgotten) {
  Filters filters(OwnDevice());
  Side side = OwnSide();
  const TensorView packed = side.Unwritten(DType::kF32, Shape({4}));
  filters.Join();
  ASSERT_TRUE(filters.Pack({2, 2, 1}, side.Of(Floats(4, 1)), DType::kF32, packed.data).ok());
  filters.Join();
  ASSERT_TRUE(filters.Finish().ok());
  EXPECT_TRUE(std::isnan(side.Read(packed)[0]));
}

}  // namespace
}  // namespace thinwire::cuda
