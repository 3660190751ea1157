// A boundary whose receiver works on a thread of its own: what that waits for, and what ends a
// wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "stage_server/boundary/boundary_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using BoundaryWorkerTest = BoundaryTest;

TEST_P(BoundaryWorkerTest, MoreMessagesThanTheScheduleAllowsAreTheSendersError) {
  for (uint64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(sender_->Send(Key(step), 5, true, Of({1, 2, 3, 4})).ok());
  }
  EXPECT_FALSE(up_->Receive(Soon()).ok());  // returns once the receiver has closed the link
  EXPECT_TRUE(receiver_->Receive(Expect(1), Soon()).ok());
  EXPECT_TRUE(receiver_->Receive(Expect(2), Soon()).ok());
  const absl::Status status = receiver_->Receive(Expect(3), Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 7 (somewhere)"));
}

// The worker has taken a message of an epoch that the executor has not begun.
TEST_P(BoundaryWorkerTest, StopEndsAWaitForAnEpochToo) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  Make(GetParam());
  StartEpoch(/*batches=*/1);
  ASSERT_TRUE(SendTo(Key(1), Expect(1)).ok());
  BoundaryReceiver::Expected expected = Expect(2);
  expected.key.epoch = 2;
  sender_->StartEpoch(Rows(2, 1));
  SendAndAwaitArrival(expected.key);
  absl::Status status;
  std::thread executor([&] { status = receiver_->Receive(expected, Soon()).status(); });
  receiver_->Stop(absl::CancelledError("enough"));
  executor.join();
  EXPECT_EQ(status, absl::CancelledError("enough"));
}

TEST_P(BoundaryWorkerTest, AMessageOfTheNextEpochWaitsUntilItBegins) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  Make(GetParam());
  StartEpoch(/*batches=*/1);
  ASSERT_TRUE(SendTo(Key(1), Expect(1)).ok());
  BoundaryReceiver::Expected expected = Expect(2);
  expected.key.epoch = 2;
  sender_->StartEpoch(Rows(2, 1));
  SendAndAwaitArrival(expected.key);
  receiver_->StartEpoch(Rows(2, 1));
  const auto received = receiver_->Receive(expected, Soon());
  EXPECT_TRUE(received.ok()) << received.status();
}

TEST_P(BoundaryWorkerTest, AnEpochThatDoesNotBeginIsWaitedForUntilTheDeadline) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  spec_.patience = std::make_shared<Patience>(absl::Milliseconds(5));
  Make(GetParam());
  sender_->StartEpoch(Rows(1, 9));
  const absl::Status status = SendTo(Key(1), Expect(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1, from stage 7 (somewhere)"),
                    HasSubstr("epoch 1 has not begun here within 5ms")));
}

// Told of it ten times a second, as a coordinator tells a stage of what the others do.
TEST_P(BoundaryWorkerTest, AMessageIsWaitedForAsLongAsTheRunAdvances) {
  spec_.patience = std::make_shared<Patience>(absl::Seconds(3));
  Make(GetParam());
  StartEpoch(/*batches=*/1);
  std::thread others([&] {
    for (uint64_t advances = 1; advances <= 35; ++advances) {
      spec_.patience->RunAdvanced(advances, SteadyTime::Now());
      absl::SleepFor(absl::Milliseconds(100));
    }
    EXPECT_TRUE(sender_->Send(Key(1), 5, true, Of({1, -4, 3, 0.5})).ok());
  });
  const auto received = receiver_->Receive(Expect(1), spec_.patience->Deadline());
  EXPECT_TRUE(received.ok()) << received.status();
  others.join();
}

INSTANTIATE_TEST_SUITE_P(Workers, BoundaryWorkerTest, ::testing::Values(Worker::kOwnThread));

}  // namespace
}  // namespace thinwire
