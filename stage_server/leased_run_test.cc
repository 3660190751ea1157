#include "stage_server/leased_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "config/experiment.h"
#include "stage_server/lease_testing.h"
#include "stage_server/open_backend.h"
#include "stage_server/service_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class LeasedRunTest : public ::testing::Test {
 protected:
  LeasedRun::Answer Acquire(const Lease& lease, double seconds = 60) {
    return leased_.Acquire(lease, "host a", seconds);
  }

  // A run without data.
  std::shared_ptr<StageRun> Built(const Lease& lease) {
    ConfigureRequest request;
    *request.mutable_lease() = lease;
    *request.mutable_experiment() = *ParseExperiment(kExperiment, "test", {});
    request.set_link_secret("what a link shows");
    request.set_threads(1);
    request.set_generates(true);
    ConfigureResponse response;
    BackendRequest cpu;
    cpu.device = "cpu";
    auto run =
        StageRun::New(request, *OpenBackend(cpu, ""), {}, &read_, boundaries_.get(), &response);
    EXPECT_TRUE(run.ok()) << run.status();
    return *std::move(run);
  }

  RunData read_;
  const std::unique_ptr<BoundaryService> boundaries_ = NewBoundaryService();
  LeasedRun leased_;
};

TEST_F(LeasedRunTest, ARunGoesWithItsLease) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease).status.ok());
  EXPECT_EQ(leased_.Of(lease).status(),
            absl::FailedPreconditionError("the stage is not configured"));
  EXPECT_TRUE(leased_.CheckMeasures(lease).ok());
  const std::shared_ptr<StageRun> run = Built(lease);
  ASSERT_TRUE(leased_.Begin(lease, run).ok());
  EXPECT_EQ(*leased_.Of(lease), run);
  EXPECT_EQ(leased_.CheckMeasures(lease),
            absl::FailedPreconditionError("the stage is configured: its links are not measured"));
  const absl::StatusOr<LogSubject> released = leased_.Release(lease);
  ASSERT_TRUE(released.ok());
  EXPECT_EQ(released->run, "one");
  EXPECT_EQ(released->stage, 0);
  EXPECT_EQ(run->stopped(), absl::CancelledError("the run was released"));
  EXPECT_FALSE(run->transfers().Make([] { return true; }, [] {}));
  EXPECT_EQ(leased_.run(), nullptr);
  EXPECT_FALSE(leased_.IsLeased());
  EXPECT_THAT(std::string(leased_.Of(lease).status().message()), HasSubstr("holds no lease"));
}

TEST_F(LeasedRunTest, AHigherGenerationEndsTheRunOfTheLower) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1)).status.ok());
  const std::shared_ptr<StageRun> run = Built(LeaseOf("one", 1));
  ASSERT_TRUE(leased_.Begin(LeaseOf("one", 1), run).ok());
  const LeasedRun::Answer answer = Acquire(LeaseOf("one", 2));
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.in_force, "run one generation 1 (host a)");
  EXPECT_EQ(run->stopped(), absl::CancelledError("another generation took the server over"));
  EXPECT_THAT(std::string(leased_.Of(LeaseOf("one", 1)).status().message()),
              HasSubstr("generation 2"));
}

TEST_F(LeasedRunTest, ARunIsNobodysIfItsLeaseHasEndedWhileItWasBuilt) {
  ASSERT_TRUE(Acquire(LeaseOf("one")).status.ok());
  const std::shared_ptr<StageRun> run = Built(LeaseOf("one"));
  ASSERT_TRUE(leased_.Release(LeaseOf("one")).ok());
  ASSERT_TRUE(Acquire(LeaseOf("two")).status.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(leased_.Begin(LeaseOf("one"), run)));
  EXPECT_EQ(leased_.run(), nullptr);
}

TEST_F(LeasedRunTest, ClearingMakesRoomForTheNextRunOfTheLease) {
  ASSERT_TRUE(Acquire(LeaseOf("one")).status.ok());
  const std::shared_ptr<StageRun> run = Built(LeaseOf("one"));
  ASSERT_TRUE(leased_.Begin(LeaseOf("one"), run).ok());
  EXPECT_FALSE(leased_.Clear(LeaseOf("two")).ok());
  EXPECT_TRUE(run->stopped().ok());
  EXPECT_TRUE(leased_.Clear(LeaseOf("one")).ok());
  EXPECT_EQ(run->stopped(), absl::CancelledError("the stage is configured anew"));
  EXPECT_TRUE(leased_.IsLeased());
}

TEST_F(LeasedRunTest, WhoAsksAgainForALeasedServerIsNoNews) {
  ASSERT_TRUE(Acquire(LeaseOf("one")).status.ok());
  Lease other = LeaseOf("two");
  other.set_secret("what nobody was told");
  const LeasedRun::Answer refused = Acquire(other);
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("leased to another run until "));
  EXPECT_TRUE(refused.is_news);
  EXPECT_FALSE(Acquire(other).is_news);
}

TEST_F(LeasedRunTest, ALeaseThatRanOutIsTakenOnce) {
  EXPECT_FALSE(leased_.TakeExpired().has_value());
  ASSERT_TRUE(Acquire(LeaseOf("one"), /*seconds=*/1e-9).status.ok());
  const std::optional<LogSubject> expired = leased_.TakeExpired();
  ASSERT_TRUE(expired.has_value());
  EXPECT_EQ(expired->run, "one");
  EXPECT_FALSE(leased_.TakeExpired().has_value());
}

TEST_F(LeasedRunTest, WhoHoldsTheLeaseIsAskedToLeaveAndNobodyFollows) {
  ASSERT_TRUE(Acquire(LeaseOf("one")).status.ok());
  leased_.AskToLeave();
  RenewRequest request;
  *request.mutable_lease() = LeaseOf("one");
  RenewResponse response;
  EXPECT_TRUE(leased_.Renew(request, &response).ok());
  EXPECT_TRUE(response.ends());
  ASSERT_TRUE(leased_.Release(LeaseOf("one")).ok());
  EXPECT_EQ(Acquire(LeaseOf("two")).status, absl::UnavailableError("this server is about to end"));
}

TEST_F(LeasedRunTest, NothingBeginsAfterTheEnd) {
  ASSERT_TRUE(Acquire(LeaseOf("one")).status.ok());
  const std::shared_ptr<StageRun> run = Built(LeaseOf("one"));
  ASSERT_TRUE(leased_.Begin(LeaseOf("one"), run).ok());
  leased_.Stop();
  const absl::Status ends = absl::CancelledError("the stage server shuts down");
  EXPECT_EQ(run->stopped(), ends);
  EXPECT_EQ(leased_.Clear(LeaseOf("one")), ends);
  EXPECT_EQ(leased_.Begin(LeaseOf("one"), run), ends);
  EXPECT_EQ(leased_.CheckMeasures(LeaseOf("one")),
            absl::CancelledError("the measurement was ended"));
}

}  // namespace
}  // namespace thinwire
