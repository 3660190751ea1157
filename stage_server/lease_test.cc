#include "stage_server/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

Lease LeaseOf(const std::string& run, uint64_t generation) {
  Lease lease;
  lease.set_run(run);
  lease.set_generation(generation);
  return lease;
}

class LeaseTest : public ::testing::Test {
 protected:
  const SteadyTime start_ = SteadyTime() + absl::Seconds(1000);
  LeaseHolder holder_;

  absl::Status Acquire(const Lease& lease, SteadyTime now) {
    return holder_.Acquire(lease, "host a", /*seconds=*/10, now);
  }
};

TEST_F(LeaseTest, AnotherRunIsRefusedAndToldWhoHoldsIt) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  const absl::Status status = Acquire(LeaseOf("two", 9), start_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("leased to run one generation 1 (host a)"));
}

TEST_F(LeaseTest, AHigherGenerationTakesOverAndFencesTheLowerOne) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  ASSERT_TRUE(Acquire(LeaseOf("one", 2), start_).ok());
  EXPECT_FALSE(holder_.Check(LeaseOf("one", 1), start_).ok());
  EXPECT_TRUE(holder_.Check(LeaseOf("one", 2), start_).ok());
}

TEST_F(LeaseTest, TheSameOrALowerGenerationIsRefused) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 2), start_).ok());
  EXPECT_FALSE(Acquire(LeaseOf("one", 2), start_).ok());
  EXPECT_FALSE(Acquire(LeaseOf("one", 1), start_).ok());
}

TEST_F(LeaseTest, RenewingKeepsItAndSilenceEndsIt) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  ASSERT_TRUE(holder_.Renew(LeaseOf("one", 1), start_ + absl::Seconds(9)).ok());
  EXPECT_TRUE(holder_.IsHeld(start_ + absl::Seconds(18)));
  EXPECT_FALSE(holder_.TakeExpired(start_ + absl::Seconds(18)));
  EXPECT_FALSE(holder_.IsHeld(start_ + absl::Seconds(19)));
  const auto expired = holder_.TakeExpired(start_ + absl::Seconds(19));
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->run(), "one");
  EXPECT_FALSE(holder_.TakeExpired(start_ + absl::Seconds(20)));
  EXPECT_TRUE(Acquire(LeaseOf("two", 1), start_ + absl::Seconds(20)).ok());
}

TEST_F(LeaseTest, AReleasedServerIsFree) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  ASSERT_TRUE(holder_.Release(LeaseOf("one", 1), start_).ok());
  EXPECT_FALSE(holder_.Check(LeaseOf("one", 1), start_).ok());
  EXPECT_TRUE(Acquire(LeaseOf("two", 1), start_).ok());
}

TEST_F(LeaseTest, WantsARunAndAGeneration) {
  EXPECT_FALSE(Acquire(LeaseOf("", 1), start_).ok());
  EXPECT_FALSE(Acquire(LeaseOf("one", 0), start_).ok());
}

TEST_F(LeaseTest, LastsMoreThanNothingAndAtMostADay) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double seconds : {0.0, -1.0, 86401.0, kInfinite, std::nan("")}) {
    const absl::Status status = holder_.Acquire(LeaseOf("one", 1), "a", seconds, start_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << seconds;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("at most 86400, got run one generation 1 for ", seconds)));
  }
  EXPECT_TRUE(holder_.Acquire(LeaseOf("one", 1), "a", 86400, start_).ok());
}

}  // namespace
}  // namespace thinwire
