#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "stage_server/lease_testing.h"
#include "stage_server/leased_run.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the same lease as somebody sends it who knows of it but not its secret.
Lease Guessed(Lease lease) {
  lease.set_secret("a guess of a secret");
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

TEST_F(LeaseTest, WhoLacksTheSecretIsRefusedAndToldNothing) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  const Lease guessed = Guessed(LeaseOf("one", 1));
  for (const Lease& lease : {Guessed(LeaseOf("two", 9)), Guessed(LeaseOf("one", 2))}) {
    EXPECT_EQ(Acquire(lease, start_),
              absl::UnavailableError("this server is leased to another run"));
  }
  const absl::Status refusals[] = {holder_.Check(guessed, start_), holder_.Renew(guessed, start_),
                                   holder_.Release(guessed, start_),
                                   holder_.Release(Lease(), start_)};
  for (const absl::Status& refusal : refusals) {
    EXPECT_EQ(refusal, absl::FailedPreconditionError("this server is leased, and this call does "
                                                     "not have the lease's secret"));
  }
  EXPECT_TRUE(holder_.Check(LeaseOf("one", 1), start_).ok());
  EXPECT_EQ(holder_.InForce(start_), "run one generation 1 (host a)");
}

TEST_F(LeaseTest, TellsHowLongItLasts) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  EXPECT_EQ(holder_.Left(start_ + absl::Seconds(3)), absl::Seconds(7));
  ASSERT_TRUE(holder_.Renew(LeaseOf("one", 1), start_ + absl::Seconds(4)).ok());
  EXPECT_EQ(holder_.Left(start_ + absl::Seconds(4)), absl::Seconds(10));
  holder_.set_lasts();
  EXPECT_EQ(holder_.Left(start_), absl::InfiniteDuration());
}

TEST_F(LeaseTest, NoMessageHasASecret) {
  const Lease lease = LeaseOf("one", 2);
  ASSERT_TRUE(Acquire(lease, start_).ok());
  for (const absl::Status& refusal :
       {Acquire(LeaseOf("one", 1), start_), Acquire(LeaseOf("two", 3), start_),
        holder_.Check(LeaseOf("one", 1), start_), holder_.Check(Guessed(lease), start_)}) {
    EXPECT_FALSE(refusal.ok());
    EXPECT_THAT(std::string(refusal.message()), Not(HasSubstr(lease.secret())));
    EXPECT_THAT(std::string(refusal.message()), Not(HasSubstr("a guess of")));
  }
  EXPECT_THAT(holder_.InForce(start_), Not(HasSubstr(lease.secret())));
}

TEST_F(LeaseTest, AnotherRunWithTheSecretIsToldWhoHoldsIt) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  const absl::Status status = Acquire(LeaseOf("two", 9), start_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("leased to run one generation 1, refused"));
}

TEST_F(LeaseTest, OneThatLastsIsThereUntilItsRelease) {
  holder_.set_lasts();
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  const SteadyTime later = start_ + absl::Hours(24);
  EXPECT_FALSE(holder_.TakeExpired(later));
  EXPECT_TRUE(holder_.Check(LeaseOf("one", 1), later).ok());
  EXPECT_TRUE(holder_.Release(LeaseOf("one", 1), later).ok());
  EXPECT_FALSE(holder_.IsHeld(later));
}

TEST_F(LeaseTest, AHigherGenerationTakesOverAndFencesTheLowerOne) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), start_).ok());
  ASSERT_TRUE(Acquire(LeaseOf("one", 2), start_).ok());
  EXPECT_FALSE(holder_.Check(LeaseOf("one", 1), start_).ok());
  EXPECT_TRUE(holder_.Check(LeaseOf("one", 2), start_).ok());
}

TEST_F(LeaseTest, TheSameOrALowerGenerationIsRefused) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 2), start_).ok());
  EXPECT_EQ(Acquire(LeaseOf("one", 2), start_),
            absl::FailedPreconditionError("this server is a stage of run one generation 2 already; "
                                          "is it named by two addresses?"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Acquire(LeaseOf("one", 1), start_)));
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

TEST_F(LeaseTest, WantsARunAGenerationAndASecret) {
  EXPECT_FALSE(Acquire(LeaseOf("", 1), start_).ok());
  EXPECT_FALSE(Acquire(LeaseOf("one", 0), start_).ok());
  Lease lease = LeaseOf("one", 1);
  lease.set_secret("fifteen letters");
  EXPECT_EQ(Acquire(lease, start_),
            absl::InvalidArgumentError("lease.secret: 15 bytes, want at least 16"));
}

TEST_F(LeaseTest, LastsMoreThanNothingAndAtMostTenMinutes) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double seconds : {0.0, -1.0, 600.5, kInfinite, std::nan("")}) {
    const absl::Status status = holder_.Acquire(LeaseOf("one", 1), "a", seconds, start_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << seconds;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("at most 600, got run one generation 1 for ", seconds)));
  }
  EXPECT_TRUE(holder_.Acquire(LeaseOf("one", 1), "a", 600, start_).ok());
}

}  // namespace
}  // namespace thinwire
