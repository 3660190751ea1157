#include "stage_server/link_meter.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "stage_server/lease_testing.h"
#include "transport/link_testing.h"

namespace thinwire {
namespace {

constexpr char kSecret[] = "what both ends show";

absl::Status Never() { return absl::OkStatus(); }

class LinkMeterTest : public ::testing::Test {
 protected:
  LinkMeterTest() {
    *asked_.mutable_lease() = *asks_.mutable_lease() = LeaseOf("doctor");
    asked_.set_link_secret(kSecret);
    asks_.set_link_secret(kSecret);
    asks_.set_downstream(behind_.address());
  }

  TestServer before_{TestServer::Socket::kUnix}, behind_{TestServer::Socket::kUnix};
  const LinkMeter measures_{before_.service()}, answers_{behind_.service()};
  AnswerLinkRequest asked_;
  MeasureLinkRequest asks_;
  MeasureLinkResponse speed_;
};

TEST_F(LinkMeterTest, OneMeasuresTheWayToAnotherThatListens) {
  absl::Notification listens;
  absl::Status answered;
  std::thread other([&] {
    answered = answers_.Answer(
        asked_, [&] { return listens.Notify(), true; }, Never);
  });
  listens.WaitForNotification();
  const absl::Status measured = measures_.Measure(asks_, Never, &speed_);
  other.join();
  EXPECT_TRUE(measured.ok()) << measured;
  EXPECT_TRUE(answered.ok()) << answered;
  EXPECT_GT(speed_.round_trip_seconds(), 0);
  EXPECT_GT(speed_.down_bytes_per_second(), 1e5);
  EXPECT_GT(speed_.up_bytes_per_second(), 1e5);
}

TEST_F(LinkMeterTest, NeitherBeginsOnceItIsStopped) {
  const absl::Status error = absl::FailedPreconditionError("the lease has ended");
  const auto stopped = [&] { return error; };
  bool listened = false;
  EXPECT_EQ(answers_.Answer(
                asked_, [&] { return listened = true; }, stopped),
            error);
  EXPECT_FALSE(listened);
  EXPECT_EQ(measures_.Measure(asks_, stopped, &speed_), error);
}

TEST_F(LinkMeterTest, AnAnswerThatNobodyWaitsForIsCancelled) {
  EXPECT_EQ(answers_.Answer(
                asked_, [] { return false; }, Never),
            absl::CancelledError("the coordinator ended the call"));
}

}  // namespace
}  // namespace thinwire
