// Codes have one number each, so every bit is the CPU's.

#include <gtest/gtest.h>

#include <cstdint>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

class ExpandWeightsTest : public testing::TestWithParam<std::tuple<WeightFormat, DType>> {};

// Writes all bytes as codes.
TEST_P(ExpandWeightsTest, IsTheCpus) {
  const auto [format, type] = GetParam();
  for (const int64_t columns : {64, 192, 67}) {
    if (format == WeightFormat::kNF4 && columns % kNF4Block != 0) continue;
    SCOPED_TRACE(columns);
    constexpr int64_t kRows = 21;
    const int64_t elements = kRows * columns;
    ExpectTwins(kSameBits, [&, format = format, type = type](Side* side) -> Outputs {
      const int64_t words = (CodeBytes(format, elements) + 3) / 4;
      std::vector<int32_t> codes(words);
      for (int64_t i = 0; i < words; ++i) codes[i] = static_cast<int32_t>(0x9E3779B9 * (i + 1));
      if (format == WeightFormat::kBF16) {
        for (int32_t& pair : codes) pair &= 0x3FFF3FFF;  // no NaN
      }
      const int64_t scales = NumScales(format, kRows, columns);
      WeightExpansion a;
      a.format = format;
      a.codes = side->Ints({words}, codes).data;
      if (scales > 0) a.scales = side->Of(RandomFloats(scales, 2));
      a.weights = side->Unwritten(type, Shape({kRows, columns}));
      EXPECT_TRUE((*side)->ExpandWeights(a).ok());
      return {{"weights", side->Read(a.weights)}};
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ExpandWeightsTest,
                         testing::Combine(testing::Values(WeightFormat::kBF16, WeightFormat::kInt8,
                                                          WeightFormat::kNF4),
                                          testing::Values(DType::kF32, DType::kBF16)));

}  // namespace
}  // namespace thinwire
