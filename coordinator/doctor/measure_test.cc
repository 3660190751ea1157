#include "coordinator/doctor/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Spelled(const std::vector<LinkHealth>& links) {
  std::vector<std::string> spelled;
  for (const LinkHealth& link : links) {
    spelled.push_back(absl::StrCat("c", link.from_carrier(), "s", link.from(), " -> c",
                                   link.to_carrier(), "s", link.to()));
  }
  return spelled;
}

TEST(LinksAmongTest, OfOnePipelineAreThoseBetweenNeighbours) {
  EXPECT_THAT(Spelled(LinksAmong(/*carriers=*/1, /*stages=*/3)),
              ElementsAre("c0s0 -> c0s1", "c0s1 -> c0s2"));
  EXPECT_THAT(LinksAmong(/*carriers=*/1, /*stages=*/1), IsEmpty());
}

TEST(LinksAmongTest, OfSeveralCarriersAreAlsoThoseOfEachStageBetweenEachTwo) {
  EXPECT_THAT(Spelled(LinksAmong(/*carriers=*/2, /*stages=*/2)),
              ElementsAre("c0s0 -> c0s1", "c1s0 -> c1s1", "c0s0 -> c1s0", "c0s1 -> c1s1"));
  EXPECT_THAT(Spelled(LinksAmong(/*carriers=*/3, /*stages=*/1)),
              ElementsAre("c0s0 -> c1s0", "c0s0 -> c2s0", "c1s0 -> c2s0"));
}

}  // namespace
}  // namespace thinwire
