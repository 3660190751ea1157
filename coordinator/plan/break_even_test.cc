#include "coordinator/plan/break_even.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(BreakEvenTest, IsBitsSavedPerSecondOfCodecWork) {
  EXPECT_EQ(BreakEvenBitsPerSecond(/*raw_bytes=*/400, /*wire_bytes=*/50, /*codec_seconds=*/4), 700);
}

TEST(BreakEvenTest, IsZeroWhenNothingIsSavedOrTimed) {
  EXPECT_EQ(BreakEvenBitsPerSecond(/*raw_bytes=*/400, /*wire_bytes=*/410, /*codec_seconds=*/1), 0);
  EXPECT_EQ(BreakEvenBitsPerSecond(/*raw_bytes=*/400, /*wire_bytes=*/50, /*codec_seconds=*/0), 0);
}

}  // namespace
}  // namespace thinwire
