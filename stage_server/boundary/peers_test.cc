#include "stage_server/boundary/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "wire/memory_link.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// The first of two carriers, of a step of at most three messages, and the other end of its link.
class CarrierPeersTest : public ::testing::Test {
 protected:
  CarrierPeersTest() {
    auto [here, there] = NewMemoryLinks(Options(), Options());
    peers_.Attach(1, std::move(here));
    other_ = std::move(there);
  }
  static LinkOptions Options() {
    LinkOptions options;
    options.name = "replicas";
    options.peer = "stage 0 of carrier 1";
    options.cut = kPeerCuts;
    options.is_among_carriers = true;
    options.receives = DIRECTION_GRADIENT;
    options.max_payload_bytes = 4;
    options.queue_capacity = 6;
    return options;
  }
  static MessageKey Key(uint32_t piece, uint32_t replica, uint64_t step = 1) {
    return {PHASE_CONTRIBUTION, DIRECTION_GRADIENT, piece, /*epoch=*/1, step, replica};
  }
  void Send(const MessageKey& key) {
    Message message;
    message.key = key;
    message.shape = {1, 1};
    const auto value = std::make_shared<float>(1.F);
    message.payload = {value, {reinterpret_cast<const uint8_t*>(value.get()), sizeof(float)}};
    other_->Send(std::move(message));
  }
  std::string Refused(const MessageKey& wanted) {
    const absl::Status status = peers_.Receive(1, wanted).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  CarrierPeers peers_{"replicas", /*carrier=*/0, /*carriers=*/2, /*most_early=*/3,
                      std::make_shared<Patience>(absl::Milliseconds(50))};
  std::unique_ptr<Link> other_;
};

TEST_F(CarrierPeersTest, MessagesOfAStepMayComeInAnyOrder) {
  for (const uint32_t replica : {2, 3}) {
    for (const uint32_t piece : {7, 8}) Send(Key(piece, replica));
  }
  for (const uint32_t piece : {7, 8}) {
    for (const uint32_t replica : {2, 3}) {
      const auto message = peers_.Receive(1, Key(piece, replica));
      ASSERT_TRUE(message.ok()) << message.status();
      EXPECT_EQ(message->key, Key(piece, replica));
    }
  }
  EXPECT_GT(peers_.wait_seconds(), 0);
}

TEST_F(CarrierPeersTest, AMessageOfAnotherStepEndsTheLink) {
  Send(Key(7, 2, /*step=*/2));
  EXPECT_THAT(Refused(Key(7, 2)),
              HasSubstr("replicas, from carrier 1: want the contribution of replica 2, piece 7, "
                        "epoch 1, step 1: got the contribution of replica 2, piece 7, epoch 1, "
                        "step 2"));
  EXPECT_FALSE(other_->Receive(SteadyTime::Now()).ok());
}

TEST_F(CarrierPeersTest, AMessageThatComesTwiceIsRefused) {
  Send(Key(8, 2));
  Send(Key(8, 2));
  EXPECT_THAT(Refused(Key(7, 2)), HasSubstr("got the contribution of replica 2, piece 8"));
}

TEST_F(CarrierPeersTest, MoreMessagesThanAStepHasAreRefused) {
  for (const uint32_t piece : {1, 2, 3, 4}) Send(Key(piece, 2));
  EXPECT_THAT(Refused(Key(7, 2)), HasSubstr("got the contribution of replica 2, piece 4"));
}

TEST_F(CarrierPeersTest, ASilentPeerIsNamedAtTheDeadline) {
  const absl::Status status = peers_.Receive(1, Key(7, 2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("from carrier 1: want the contribution of"));
}

TEST_F(CarrierPeersTest, CloseEndsWaits) {
  peers_.Close(absl::CancelledError("the run ends"));
  EXPECT_EQ(peers_.Receive(1, Key(7, 2)).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace thinwire
