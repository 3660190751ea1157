#include "coordinator/tune/cuts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void Add(const std::string& name, const std::string& family, double step_ms, double error,
         TuneCandidates* all) {
  TuneCandidate* const one = all->Add();
  one->set_name(name);
  one->set_family(family);
  one->set_step_seconds(step_ms / 1e3);
  if (error >= 0) one->set_gradient_error(error);
}

std::vector<std::string> Names(TuneCandidates* all) {
  std::vector<std::string> names;
  for (const TuneCandidate* one : StillStanding(all)) names.push_back(one->name());
  return names;
}

TEST(CutByPlanTest, WhatIsNoFasterThanNoneOrThanAGentlerOneFalls) {
  TuneCandidates all;
  Add("none", "", 100, -1, &all);
  Add("fine", "kept", 50, -1, &all);
  Add("coarse", "kept", 50, -1, &all);  // sends less, and gains nothing
  Add("coarser", "kept", 40, -1, &all);
  Add("other", "", 60, -1, &all);  // of no family
  Add("slow", "", 100, -1, &all);
  CutByPlan(&all);
  EXPECT_THAT(Names(&all), ElementsAre("fine", "coarser", "other"));
  EXPECT_EQ(CandidateNamed(all, "coarse").fell(), "plan: no faster than fine, which is gentler");
  EXPECT_EQ(CandidateNamed(all, "slow").fell(),
            "plan: its step takes 100.0 ms, that of none 100.0 ms");
}

TEST(CutByErrorTest, OnlyTheFrontStaysAndTheFallenNameWhoBeatsThem) {
  TuneCandidates all;
  Add("none", "", 100, -1, &all);
  Add("a", "", 10, 0.9, &all);
  Add("b", "", 20, 0.3, &all);
  Add("worse", "", 25, 0.4, &all);
  Add("c", "", 40, 0.1, &all);
  CutByError(8, &all);
  EXPECT_THAT(Names(&all), ElementsAre("a", "b", "c"));
  EXPECT_THAT(CandidateNamed(all, "worse").fell(),
              HasSubstr("0.400 in 25.0 ms; b has 0.300 in 20.0 ms"));
}

TEST(CutByErrorTest, OfALongFrontTheEndsAndEvenlySpreadOthersStay) {
  TuneCandidates all;
  Add("none", "", 1000, -1, &all);
  for (int i = 0; i < 7; ++i) Add(std::string(1, 'a' + i), "", 10 + i, 0.9 - 0.1 * i, &all);
  Add("unprobed", "", 500, -1, &all);
  CutByError(4, &all);
  EXPECT_THAT(Names(&all), ElementsAre("a", "d", "g", "unprobed"));
}

TEST(CutByErrorTest, WhatHasFallenIsLeftAlone) {
  TuneCandidates all;
  Add("none", "", 100, -1, &all);
  Add("a", "", 10, 0.1, &all);
  all.Mutable(1)->set_fell("plan: before");
  CutByError(1, &all);
  EXPECT_THAT(Names(&all), IsEmpty());
  EXPECT_EQ(all.Get(1).fell(), "plan: before");
}

}  // namespace
}  // namespace thinwire
