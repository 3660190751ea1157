// Tests pipeline.swap, and what is short for it.
#include "config/swap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/kept.h"
#include "config/resolve_testing.h"
#include "config/stash.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(SwapConfigTest, NothingLeavesTheDeviceByDefault) {
  EXPECT_EQ(*SwapFrom(With({})), SwapTo::kDevice);
  EXPECT_FALSE(Swaps(With({})));
  EXPECT_EQ(*SwapFrom(With({"pipeline.swap=host"})), SwapTo::kHost);
  EXPECT_TRUE(Swaps(With({"pipeline.swap=disk"})));
}

TEST(SwapConfigTest, APlaceForTheStashIsShortForSwap) {
  const Experiment e = With({"pipeline.stash=disk"});
  EXPECT_EQ(*SwapFrom(e), SwapTo::kDisk);
  EXPECT_FALSE(e.pipeline().has_stash());
  const std::string file = std::string(kLeast) + "pipeline: {stash: host}\n";
  EXPECT_EQ(*SwapFrom(With({}, file)), SwapTo::kHost);
}

TEST(SwapConfigTest, AStashMayWaitElsewhere) {
  const Experiment e = With({"pipeline.stash={codec: uniform, bits: 4}", "pipeline.swap=disk"});
  EXPECT_EQ(*SwapFrom(e), SwapTo::kDisk);
  EXPECT_EQ(StashFrom(e)->value().codec.bits, 4u);
}

TEST(SwapConfigTest, OtherPlacesAreRefused) {
  EXPECT_THAT(ErrorWith({"pipeline.swap=disc"}),
              HasSubstr("pipeline.swap: unknown place \"disc\""));
  EXPECT_THAT(ErrorWith({"pipeline.stash=hosts"}), HasSubstr("\"hosts\""));
}

}  // namespace
}  // namespace thinwire
