#include "nn/cuda/filter.h"

#include "nn/cuda/device_testing.h"

namespace thinwire::cuda {
namespace {

constexpr FilterShape kShapes[] = {{1, 1, 1}, {64, 3, 49}, {5, 33, 9}, {300, 7, 1}, {2, 512, 9}};

// use(index in [out, in, pixels], index in [out, pixels, in])
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

TEST(FilterTest, PacksChannelsLastAndRounds) {
  for (const FilterShape& shape : kShapes) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      Side side = OwnSide(), cpu = CpuSide();
      const int64_t n = shape.elements();
      const Floats weights = RandomFloats(n, 1);
      Floats want(n);
      ForEach(shape, [&](int64_t plain, int64_t packed) { want[packed] = weights[plain]; });
      const TensorView packed = side.Unwritten(type, Shape({n}));
      ASSERT_TRUE(PackFilter(OwnDevice(), shape, side.Of(weights), type, packed.data).ok());
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
      const TensorView packed = side.Of(type, Shape({n}), RandomFloats(n, 1));
      const Floats values = side.Read(packed);
      Floats want = before;
      ForEach(shape, [&](int64_t plain, int64_t from) { want[plain] += values[from]; });
      float* const gradient = side.Of(before);
      ASSERT_TRUE(AddPackedGradient(OwnDevice(), shape, packed.data, type, gradient).ok());
      EXPECT_EQ(side.Read(gradient, n), want);
    }
  }
}

}  // namespace
}  // namespace thinwire::cuda
