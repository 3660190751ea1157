// Findings about ids are whole numbers: all are the CPU's.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

constexpr int32_t kPad = 0, kSeparator = 1;

// Returns ids [samples, positions] with ends of all lengths, and none to three separators.
std::vector<int32_t> SomeIds(int64_t samples, int64_t positions) {
  RandomStream random(RandomKey(3, "ids"));
  std::vector<int32_t> ids;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const uint32_t length = random.Below(static_cast<uint32_t>(positions) + 1);
    for (int64_t t = 0; t < positions; ++t) {
      const auto id = static_cast<int32_t>(random.Below(static_cast<uint32_t>(positions)));
      ids.push_back(t < length ? id : kPad);
    }
  }
  return ids;
}

TEST(TokenIdsTest, LengthsAndTypesAreTheCpus) {
  for (const int64_t positions : {1, 2, 31, 32, 33, 300}) {
    constexpr int64_t kSamples = 21;
    const Shape shape({kSamples, positions}), samples({kSamples});
    const std::vector<int32_t> ids = SomeIds(kSamples, positions);
    const auto found = [&](Side side) {
      const TensorView x = side.Ints(shape, ids);
      const TensorView lengths = side.Ints(samples, std::vector<int32_t>(kSamples, -1));
      const TensorView types = side.Ints(shape, std::vector<int32_t>(ids.size(), -1));
      EXPECT_TRUE(side->CountPositions(x, kPad, static_cast<int32_t*>(lengths.data)).ok());
      EXPECT_TRUE(side->TokenTypes(x, kSeparator, types).ok());
      return std::make_pair(side.ReadInts(lengths), side.ReadInts(types));
    };
    EXPECT_EQ(found(DeviceSide()), found(CpuSide())) << positions;
  }
}

}  // namespace
}  // namespace thinwire
