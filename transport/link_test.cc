#include "wire/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>

#include "base/steady_time.h"
#include "transport/link_testing.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

class LinkTest : public ::testing::TestWithParam<Transport> {};

TEST_P(LinkTest, PayloadsOfEverySizeArriveUnchanged) {
  ConnectedLinks links(GetParam());
  for (size_t bytes : {size_t{0}, size_t{1}, 4 * kMiB, 4 * kMiB + 1, 9 * kMiB}) {
    const Message activation = TestMessage(DIRECTION_ACTIVATION, bytes);
    links.upstream->Send(activation);
    const absl::StatusOr<Message> down = links.downstream->Receive(TestDeadline());
    ASSERT_TRUE(down.ok()) << bytes << " bytes: " << down.status();
    EXPECT_TRUE(SameMessage(*down, activation)) << bytes << " bytes";

    const Message gradient = TestMessage(DIRECTION_GRADIENT, bytes);
    links.downstream->Send(gradient);
    const absl::StatusOr<Message> up = links.upstream->Receive(TestDeadline());
    ASSERT_TRUE(up.ok()) << bytes << " bytes: " << up.status();
    EXPECT_TRUE(SameMessage(*up, gradient)) << bytes << " bytes";
  }
}

TEST_P(LinkTest, ReceivedPayloadIsAlignedTo64Bytes) {
  ConnectedLinks links(GetParam());
  links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 100));
  const absl::StatusOr<Message> message = links.downstream->Receive(TestDeadline());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(message->payload.bytes.data()) % 64, 0u);
}

TEST_P(LinkTest, MessagesArriveInTheOrderTheyWereSent) {
  ConnectedLinks links(GetParam());
  std::thread sender([&links] {
    for (uint32_t i = 0; i < 200; ++i) {
      // At most queue_capacity in flight: a gradient acknowledges each activation.
      links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, i * 100, i));
      if (i >= 3 && !links.upstream->Receive(TestDeadline()).ok()) return;
    }
  });
  for (uint32_t i = 0; i < 200; ++i) {
    const absl::StatusOr<Message> message = links.downstream->Receive(TestDeadline());
    EXPECT_TRUE(message.ok()) << message.status();
    if (!message.ok()) break;
    EXPECT_EQ(message->key.microbatch, i);
    EXPECT_EQ(message->payload.bytes.size(), i * 100);
    links.downstream->Send(TestMessage(DIRECTION_GRADIENT, 1, i));
  }
  sender.join();
}

// Sends more messages than shared memory has slots.
TEST_P(LinkTest, ManyMessagesUnderWayArriveInOrder) {
  constexpr uint32_t kMessages = 80;
  LinkOptions upstream = UpstreamOptions(), downstream = DownstreamOptions();
  upstream.queue_capacity = downstream.queue_capacity = kMessages;
  ConnectedLinks links(GetParam(), upstream, downstream);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < kMessages; ++i) {
      links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, kMiB / 8 + i, i));
    }
    ASSERT_TRUE(links.upstream->Flush(TestDeadline()).ok());
    for (uint32_t i = 0; i < kMessages; ++i) {
      const absl::StatusOr<Message> message = links.downstream->Receive(TestDeadline());
      ASSERT_TRUE(message.ok()) << message.status();
      EXPECT_TRUE(SameMessage(*message, TestMessage(DIRECTION_ACTIVATION, kMiB / 8 + i, i))) << i;
    }
  }
}

TEST_P(LinkTest, WireBytesOfALargePayloadExceedItByLessThanAThousandth) {
  ConnectedLinks links(GetParam());
  const uint64_t wire_bytes = links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, kMiB / 4));
  EXPECT_GT(wire_bytes, kMiB / 4);
  EXPECT_LE(wire_bytes, kMiB / 4 * 1.001);
}

TEST_P(LinkTest, ReceiveNamesCutAndPeerWhenNothingCame) {
  ConnectedLinks links(GetParam());
  const absl::Status status = links.downstream->Receive(SteadyTime::Now()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut layer3, from stage 3: no activation by the deadline"));
}

TEST_P(LinkTest, AMessageCanBeReceivedAfterADeadlineHasPassed) {
  ConnectedLinks links(GetParam());
  EXPECT_TRUE(absl::IsDeadlineExceeded(links.downstream->Receive(SteadyTime::Now()).status()));
  links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 10));
  EXPECT_TRUE(links.downstream->Receive(TestDeadline()).ok());
}

TEST_P(LinkTest, CloseWakesReceiveWithItsReason) {
  ConnectedLinks links(GetParam());
  absl::Status received;
  std::thread receiver([&] { received = links.downstream->Receive(TestDeadline()).status(); });
  links.downstream->Close(absl::CancelledError("the run was stopped"));
  receiver.join();
  EXPECT_EQ(received, absl::CancelledError("the run was stopped"));
}

TEST_P(LinkTest, ClosingTwiceKeepsTheFirstReason) {
  ConnectedLinks links(GetParam());
  links.downstream->Close(absl::CancelledError("first"));
  links.downstream->Close(absl::InternalError("second"));
  EXPECT_EQ(links.downstream->Receive(TestDeadline()).status(), absl::CancelledError("first"));
}

TEST_P(LinkTest, PeerOfAClosedLinkIsToldThatItIsGone) {
  for (const bool upstream_closes : {true, false}) {
    ConnectedLinks links(GetParam());
    Link& closing = upstream_closes ? *links.upstream : *links.downstream;
    Link& other = upstream_closes ? *links.downstream : *links.upstream;
    closing.Close(absl::CancelledError("stopped"));
    const absl::Status status = other.Receive(TestDeadline()).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(upstream_closes ? "from stage 3: the peer" : "from stage 4: the peer"));
  }
}

// The peer is told even if the link is destroyed at once.
TEST_P(LinkTest, TheUpstreamPeerIsToldWhyALinkIsClosed) {
  for (const bool is_destroyed : {false, true}) {
    ConnectedLinks links(GetParam());
    links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 1000));
    ASSERT_TRUE(links.downstream->Receive(TestDeadline()).ok());
    links.downstream->Close(absl::InvalidArgumentError("a payload that cannot be"));
    if (is_destroyed) links.downstream = nullptr;
    const absl::Status status = links.upstream->Receive(TestDeadline()).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("INVALID_ARGUMENT: a payload that cannot be"));
  }
}

TEST_P(LinkTest, PeerOfADestroyedLinkIsToldThatItIsGone) {
  for (const bool upstream_goes : {true, false}) {
    ConnectedLinks links(GetParam());
    std::unique_ptr<Link>& going = upstream_goes ? links.upstream : links.downstream;
    Link& other = upstream_goes ? *links.downstream : *links.upstream;
    going = nullptr;
    EXPECT_TRUE(absl::IsUnavailable(other.Receive(TestDeadline()).status()));
  }
}

TEST_P(LinkTest, SendAfterCloseIsHarmlessAndStillCountsItsBytes) {
  ConnectedLinks links(GetParam());
  const uint64_t open = links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 1000));
  links.upstream->Close(absl::CancelledError("stopped"));
  EXPECT_EQ(links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 1000)), open);
}

TEST_P(LinkTest, DestroyingALinkWithUnsentMessagesReturns) {
  ConnectedLinks links(GetParam());
  for (uint32_t i = 0; i < 20; ++i) {
    links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 9 * kMiB, i));
  }
  links.upstream = nullptr;
  // Everything that came before the end can be received; only then the end shows.
  absl::Status end;
  while (end.ok()) end = links.downstream->Receive(TestDeadline()).status();
  EXPECT_FALSE(absl::IsDeadlineExceeded(end)) << end;
}

TEST_P(LinkTest, PayloadIsReleasedOnceItHasBeenSentAndReceived) {
  ConnectedLinks links(GetParam());
  Message message = TestMessage(DIRECTION_ACTIVATION, 5 * kMiB);
  const std::weak_ptr<const void> owner = message.payload.owner;
  links.upstream->Send(std::move(message));
  ASSERT_TRUE(links.downstream->Receive(TestDeadline()).ok());
  ASSERT_TRUE(links.upstream->Flush(TestDeadline()).ok());
  links = ConnectedLinks(Transport::kMemory);  // ends both, so that gRPC drops its slices
  EXPECT_TRUE(owner.expired());
}

TEST_P(LinkTest, OneMessageMoreThanTheQueueHoldsIsThePeersError) {
  LinkOptions downstream = DownstreamOptions();
  downstream.queue_capacity = 2;
  ConnectedLinks links(GetParam(), UpstreamOptions(), downstream);
  for (uint32_t i = 0; i < 3; ++i) {
    links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 5 * kMiB, i));
  }
  // The sender has learnt of the end by then, so all three have come.
  EXPECT_TRUE(absl::IsUnavailable(links.upstream->Receive(TestDeadline()).status()));
  EXPECT_TRUE(links.downstream->Receive(TestDeadline()).ok());
  EXPECT_TRUE(links.downstream->Receive(TestDeadline()).ok());
  const absl::Status status = links.downstream->Receive(TestDeadline()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a message more than the 2"));
}

TEST_P(LinkTest, AFullQueueIsNoErrorOnceAMessageWasTaken) {
  LinkOptions downstream = DownstreamOptions();
  downstream.queue_capacity = 1;
  ConnectedLinks links(GetParam(), UpstreamOptions(), downstream);
  for (uint32_t i = 0; i < 3; ++i) {
    links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 100, i));
    ASSERT_TRUE(links.downstream->Receive(TestDeadline()).ok());
  }
}

TEST_P(LinkTest, AMessageOverThePayloadLimitIsRefused) {
  LinkOptions downstream = DownstreamOptions();
  downstream.max_payload_bytes = 1000;
  ConnectedLinks links(GetParam(), UpstreamOptions(), downstream);
  links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 1001));
  const absl::Status status = links.downstream->Receive(TestDeadline()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("payload_bytes is 1001, want 0 to 1000"));
  EXPECT_TRUE(absl::IsUnavailable(links.upstream->Receive(TestDeadline()).status()));
}

TEST_P(LinkTest, FlushReturnsWhenEverythingIsSent) {
  ConnectedLinks links(GetParam());
  links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 9 * kMiB));
  EXPECT_TRUE(links.upstream->Flush(TestDeadline()).ok());
}

std::string TransportName(const ::testing::TestParamInfo<Transport>& info) {
  switch (info.param) {
    case Transport::kMemory:
      return "Memory";
    case Transport::kUnix:
      return "Unix";
    case Transport::kTcp:
      return "Tcp";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Transports, LinkTest,
                         ::testing::Values(Transport::kMemory, Transport::kUnix, Transport::kTcp),
                         TransportName);

TEST(SocketBytesAckedTest, GrowsByWhatWasSentOverTcp) {
  ConnectedLinks links(Transport::kTcp);
  links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, 5 * kMiB));
  ASSERT_TRUE(links.downstream->Receive(TestDeadline()).ok());
  links.downstream->Send(TestMessage(DIRECTION_GRADIENT, 2 * kMiB));
  ASSERT_TRUE(links.upstream->Receive(TestDeadline()).ok());
  EXPECT_GE(links.upstream->SocketBytesAcked(), 5 * kMiB);
  EXPECT_LT(links.upstream->SocketBytesAcked(), 6 * kMiB);
  EXPECT_GE(links.downstream->SocketBytesAcked(), 1 * kMiB);
  EXPECT_LT(links.downstream->SocketBytesAcked(), 3 * kMiB);
}

TEST(SocketBytesAckedTest, IsZeroWithoutATcpSocket) {
  for (Transport transport : {Transport::kMemory, Transport::kUnix}) {
    ConnectedLinks links(transport);
    links.upstream->Send(TestMessage(DIRECTION_ACTIVATION, kMiB));
    ASSERT_TRUE(links.downstream->Receive(TestDeadline()).ok());
    EXPECT_EQ(links.upstream->SocketBytesAcked(), 0u);
    EXPECT_EQ(links.downstream->SocketBytesAcked(), 0u);
  }
}

}  // namespace
}  // namespace thinwire
