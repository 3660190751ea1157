#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "coordinator/fleet/fleet.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

class ArrivalsTest : public ::testing::Test {
 protected:
  Arrivals Of(int stages) {
    return Arrivals(
        stages, [this](const std::string& line) { said_.push_back(line); },
        [this] { return now_; });
  }

  SteadyTime now_ = SteadyTime::Now();
  std::vector<std::string> said_;
};

TEST_F(ArrivalsTest, NothingIsSaidOfAShortWait) {
  Arrivals arrivals = Of(2);
  arrivals.Missing(0, "stage 0 (a:1)", "refused");
  now_ = now_ + absl::Seconds(2);
  arrivals.Missing(0, "stage 0 (a:1)", "refused");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(ArrivalsTest, ALongOneIsToldOfWithEachCauseAndNotTooOften) {
  Arrivals arrivals = Of(4);
  arrivals.Missing(3, "stage 3 (d:1)", "DNS resolution failed for d:1: Domain name not found");
  arrivals.Missing(1, "stage 1 (b:1)", "cannot connect: Connection refused");
  now_ = now_ + absl::Seconds(3);
  arrivals.Missing(1, "stage 1 (b:1)", "cannot connect: Connection refused");
  arrivals.Missing(3, "stage 3 (d:1)", "DNS resolution failed for d:1: Domain name not found");
  EXPECT_THAT(said_,
              ElementsAre("waiting for 2 of 4 stages: stage 1 (b:1): Connection refused; stage 3 "
                          "(d:1): Domain name not found"));
  arrivals.Arrived(1);
  now_ = now_ + absl::Seconds(10);
  arrivals.Missing(3, "stage 3 (d:1)", "Connection refused");
  EXPECT_EQ(said_.back(), "waiting for 1 of 4 stages: stage 3 (d:1): Connection refused");
  EXPECT_EQ(said_.size(), 2u);
}

TEST_F(ArrivalsTest, OfManyStagesTheFirstAreNamed) {
  Arrivals arrivals = Of(99);
  for (int i = 0; i < 50; ++i) arrivals.Missing(i, absl::StrCat("stage ", i), "gone");
  now_ = now_ + absl::Seconds(3);
  arrivals.Missing(7, "stage 7", "gone");
  EXPECT_THAT(said_, ElementsAre(EndsWith("50 of 99 stages: stage 0: gone; stage 1: gone; stage 2: "
                                          "gone; stage 3: gone; …")));
}

}  // namespace
}  // namespace thinwire
