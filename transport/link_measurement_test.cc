#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "transport/link_testing.h"
#include "transport/speed.h"
#include "wire/link_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kSecret[] = "what both ends show";

absl::Status Never() { return absl::OkStatus(); }

ConnectedLinks Links(Transport transport) {
  return ConnectedLinks(transport, MeasuredLink(3, kSecret, "stage 1", DIRECTION_GRADIENT),
                        MeasuredLink(3, kSecret, "stage 0", DIRECTION_ACTIVATION));
}

TEST(LinkMeasurementTest, BothDirectionsAndTheRoundTripAreMeasuredFromOneEnd) {
  for (const Transport transport : {Transport::kMemory, Transport::kUnix, Transport::kTcp}) {
    ConnectedLinks links = Links(transport);
    absl::Status answered;
    std::thread other(
        [&] { answered = AnswerLink(links.downstream.get(), TestDeadline(), Never); });
    const SteadyTime start = SteadyTime::Now();
    const auto speed =
        MeasureLink(links.upstream.get(), absl::Milliseconds(50), TestDeadline(), Never);
    const double seconds = SecondsSince(start);
    links.upstream.reset();
    other.join();
    ASSERT_TRUE(speed.ok()) << speed.status();
    EXPECT_TRUE(answered.ok()) << answered;
    EXPECT_GT(speed->round_trip_seconds, 0);
    EXPECT_LT(speed->round_trip_seconds, seconds / 11);
    // At least one message of 4 KiB in that time, and not more than memory can do.
    for (const double rate : {speed->down_bytes_per_second, speed->up_bytes_per_second}) {
      EXPECT_GT(rate, 4096 / seconds);
      EXPECT_LT(rate, 1e12);
    }
  }
}

TEST(LinkMeasurementTest, ASilentPeerIsWaitedForNoLongerThanTheDeadline) {
  ConnectedLinks links = Links(Transport::kTcp);
  const SteadyTime soon = SteadyTime::Now() + absl::Milliseconds(150);
  EXPECT_EQ(MeasureLink(links.upstream.get(), absl::Seconds(1), soon, Never).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(LinkMeasurementTest, WhoStopsItIsHeard) {
  ConnectedLinks links = Links(Transport::kTcp);
  const auto stopped = [] { return absl::CancelledError("the lease has ended"); };
  EXPECT_EQ(AnswerLink(links.downstream.get(), TestDeadline(), stopped),
            absl::CancelledError("the lease has ended"));
}

TEST(LinkMeasurementTest, AnAnswerThatIsTooLongIsRefused) {
  ConnectedLinks links = Links(Transport::kMemory);
  Message message = TestMessage(DIRECTION_ACTIVATION, 4);
  message.key = {PHASE_TRAIN, DIRECTION_ACTIVATION, 0xFFFFFFFF, 1, uint64_t{1} << 40, 0};
  links.upstream->Send(message);
  EXPECT_THAT(std::string(AnswerLink(links.downstream.get(), TestDeadline(), Never).message()),
              HasSubstr("an answer of 1099511627776 floats is asked for, want 1 to 262144"));
}

}  // namespace
}  // namespace thinwire
