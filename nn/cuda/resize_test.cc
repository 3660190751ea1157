// Values are moved, not computed, so every bit is the CPU's.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

class ResizeTest : public testing::TestWithParam<std::tuple<DType, int64_t, int64_t>> {};

TEST_P(ResizeTest, IsTheCpus) {
  const auto [type, from, to] = GetParam();
  constexpr int64_t kRows = 301;
  ExpectTwins(kSameBits, [&, type = type, from = from, to = to](Side* side) -> Outputs {
    const TensorView x = side->Of(type, Shape({7, 43, from}), RandomFloats(kRows * from, 1)),
                     y = side->Unwritten(type, Shape({7, 43, to}));
    EXPECT_TRUE((*side)->Resize(x, y).ok());
    return {{"y", side->Read(y)}};
  });
}

TEST(CopyColumnsTest, IsTheCpus) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    ExpectTwins(kSameBits, [type](Side* side) -> Outputs {
      ColumnCopy a;
      a.from = side->Of(type, Shape({51, 37}), RandomFloats(51 * 37, 1));
      a.to = side->Of(type, Shape({51, 90}), RandomFloats(51 * 90, 2));
      a.from_column = 5;
      a.to_column = 61;
      a.columns = 29;
      EXPECT_TRUE((*side)->CopyColumns(a).ok());
      return {{"to", side->Read(a.to)}};
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ResizeTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(1, 16, 37), testing::Values(1, 8, 50)));

}  // namespace
}  // namespace thinwire
