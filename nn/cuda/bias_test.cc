#include "nn/cuda/column_sums.h"
#include "nn/cuda/device_testing.h"
#include "nn/cuda/kernels.h"

namespace thinwire::cuda {
namespace {

// Rows and channels: one, odd, as wide as a vector, wider than a block, longer than a tile.
constexpr int64_t kShapes[][2] = {{1, 1}, {3, 5}, {7, 8}, {2, 3000}, {5000, 16}, {300, 130}};

// Calls test(&side, type, rows, channels) with aligned and with misaligned memory.
template <typename Test>
void ForEachMatrix(const Test& test) {
  for (const auto& [rows, channels] : kShapes) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      for (const int64_t misaligned : {0, 1}) {
        Side side = OwnSide(misaligned);
        test(&side, type, rows, channels);
      }
    }
  }
}

TEST(BiasTest, IsAddedToEveryRowWithOneRounding) {
  ForEachMatrix([](Side* side, DType type, int64_t rows, int64_t channels) {
    const Floats bias = RandomFloats(channels, 2);
    const TensorView y = side->Of(type, {rows, channels}, RandomFloats(rows * channels, 1));
    Floats want = side->Read(y);
    for (int64_t i = 0; i < rows * channels; ++i) want[i] += bias[i % channels];
    Side cpu = CpuSide();
    ASSERT_TRUE(AddBias(OwnDevice(), side->Of(bias), y).ok());
    EXPECT_EQ(side->Read(y), cpu.Read(cpu.Of(type, {rows, channels}, want)));
  });
}

TEST(BiasTest, GradientIsAddedToAndIsTheColumnsSum) {
  ForEachMatrix([](Side* side, DType type, int64_t rows, int64_t channels) {
    const TensorView dy = side->Of(type, {rows, channels}, RandomFloats(rows * channels, 1));
    const Floats values = side->Read(dy);
    std::vector<double> want(channels, 3.0);
    for (int64_t i = 0; i < rows * channels; ++i) {
      want[i % channels] += static_cast<double>(values[i]);
    }
    float* const gradient = side->Of(Floats(channels, 3));
    ColumnSums sums(OwnDevice());
    ASSERT_TRUE(AddColumnSums(OwnDevice(), dy, channels, &sums, gradient).ok());
    const Floats got = side->Read(gradient, channels);
    // Sums are fp32 over up to 64 * 32 values, then fp64.
    const double tolerance = 1e-5 * std::sqrt(static_cast<double>(rows));
    for (int64_t c = 0; c < channels; ++c) EXPECT_NEAR(got[c], want[c], tolerance);
  });
}

}  // namespace
}  // namespace thinwire::cuda
