#include "transport/boundary_service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/steady_time.h"
#include "proto/boundary.grpc.pb.h"
#include "transport/dial.h"
#include "transport/link_testing.h"
#include "transport/raw_peer_testing.h"
#include "transport/settings.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// A server with one listening link, and what dials it.
class BoundaryServiceTest : public ::testing::Test {
 protected:
  BoundaryServiceTest() : server_(TestServer::Socket::kTcp) { Listen(DownstreamOptions()); }

  void Listen(const LinkOptions& options) {
    link_ = nullptr;
    absl::StatusOr<std::unique_ptr<Link>> link = server_.service()->Listen(options);
    ASSERT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
  }

  absl::StatusOr<std::unique_ptr<Link>> Dial(const LinkOptions& options) {
    return DialLink(server_.address(), options, Security(), TestDeadline());
  }

  TestServer server_;
  std::unique_ptr<Link> link_;
};

// Returns the frames of an activation that the link accepts.
std::vector<Frame> GoodFrames(size_t payload_bytes) {
  std::vector<Frame> frames;
  for (const OutgoingFrame& outgoing :
       ToFrames(TestMessage(DIRECTION_ACTIVATION, payload_bytes), 77, 5)) {
    frames.emplace_back();
    const ByteSpan bytes = outgoing.payload.bytes;
    EXPECT_TRUE(
        frames.back().ParseFromString(outgoing.prefix + std::string(bytes.begin(), bytes.end())));
  }
  return frames;
}

void SealHeader(Frame* frame) {
  const std::string bytes = frame->header().SerializeAsString();
  frame->set_header_crc32c(Crc32c(bytes.data(), bytes.size()));
}

TEST_F(BoundaryServiceTest, AFrameOfStockProtobufAndGrpcIsReceived) {
  RawPeer peer(server_.address());
  peer.Write(GoodFrames(1000)[0]);
  const absl::StatusOr<Message> message = link_->Receive(TestDeadline());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(SameMessage(*message, TestMessage(DIRECTION_ACTIVATION, 1000)));
}

// The memory that docs/wire.md describes, written without our code; slots of 64 KiB.
class RawMemory {
 public:
  static constexpr size_t kPage = 4096, kSlot = 64 << 10, kBytes = kPage + 64 * kSlot;

  RawMemory() : file_(memfd_create("raw", MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(file_, kBytes), 0);
    EXPECT_EQ(fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    bytes_ = static_cast<char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, /*offset=*/0));
    std::memcpy(bytes_, "\x65\x72\x69\x77\x6e\x69\x68\x74\0\0\1\0\0\0\0\0", 16);
    std::memset(bytes_ + 16, 'a', 32);
  }
  ~RawMemory() {
    munmap(bytes_, kBytes);
    close(file_);
  }

  std::string Ticket() const {
    std::string digits;
    for (int i = 0; i < 32; ++i) digits += "61";
    return absl::StrCat(getpid(), " ", file_, " ", digits);
  }
  void Put(int slot, const std::string& payload) {
    std::memcpy(bytes_ + kPage + slot * kSlot, payload.data(), payload.size());
    Word(slot) = 1;
  }
  volatile char& Word(int slot) { return bytes_[48 + 4 * slot]; }

 private:
  const int file_;
  char* bytes_;
};

class SharedPayloadTest : public ::testing::Test {
 protected:
  SharedPayloadTest()
      : server_(TestServer::Socket::kUnix),
        link_(*server_.service()->Listen(DownstreamOptions())),
        peer_(server_.address(), memory_.Ticket()),
        frame_(ToFrames(TestMessage(DIRECTION_ACTIVATION, 50000), 77, 5).front()) {}

  TestServer server_;
  std::unique_ptr<Link> link_;
  RawMemory memory_;
  RawPeer peer_;
  const OutgoingFrame frame_;
};

TEST_F(SharedPayloadTest, AsTheDocumentHasItIsReceivedAndItsSlotGivenBack) {
  ASSERT_TRUE(peer_.Shares());
  const ByteSpan payload = frame_.payload.bytes;
  memory_.Put(3, std::string(payload.begin(), payload.end()));
  peer_.Write(std::string("\x07\3\0\0\0\x50\xc3\0\0", 9) + frame_.prefix);
  const absl::StatusOr<Message> message = link_->Receive(TestDeadline());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(SameMessage(*message, TestMessage(DIRECTION_ACTIVATION, 50000)));
  // The thread that received the message frees the slot only after it has handed the message on.
  const SteadyTime deadline = TestDeadline();
  while (memory_.Word(3) != 0 && SteadyTime::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(memory_.Word(3), 0);
}

TEST_F(SharedPayloadTest, OfASlotThatThereIsNotEndsTheLink) {
  ASSERT_TRUE(peer_.Shares());
  peer_.Write(std::string("\x07\x20\0\0\0\x50\xc3\0\0", 9) + frame_.prefix);
  const absl::Status status = link_->Receive(TestDeadline()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("50000 bytes in slot 32"));
}

TEST_F(SharedPayloadTest, ThatIsAnotherThanItsChecksumEndsTheLink) {
  ASSERT_TRUE(peer_.Shares());
  memory_.Put(0, std::string(50000, 'x'));
  peer_.Write(std::string("\x07\0\0\0\0\x50\xc3\0\0", 9) + frame_.prefix);
  EXPECT_TRUE(absl::IsDataLoss(link_->Receive(TestDeadline()).status()));
}

TEST_F(BoundaryServiceTest, WhatWasSentBeforeThePeerCameIsDelivered) {
  link_->Send(TestMessage(DIRECTION_GRADIENT, 5 << 20));
  const absl::StatusOr<std::unique_ptr<Link>> upstream = Dial(UpstreamOptions());
  ASSERT_TRUE(upstream.ok()) << upstream.status();
  const absl::StatusOr<Message> message = (*upstream)->Receive(TestDeadline());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(SameMessage(*message, TestMessage(DIRECTION_GRADIENT, 5 << 20)));
}

TEST_F(BoundaryServiceTest, ReceiveAndFlushSayThatThePeerHasNotConnected) {
  EXPECT_THAT(std::string(link_->Receive(SteadyTime::Now()).status().message()),
              HasSubstr("the peer has not connected"));
  link_->Send(TestMessage(DIRECTION_GRADIENT, 10));
  const absl::Status flushed = link_->Flush(SteadyTime::Now());
  EXPECT_TRUE(absl::IsDeadlineExceeded(flushed)) << flushed;
  EXPECT_THAT(std::string(flushed.message()), HasSubstr("1 frames are not sent"));
}

TEST_F(BoundaryServiceTest, WhoLacksTheSecretIsRefusedAndToldNothingWhateverItNames) {
  for (const char* secret : {"", "what a link show", "what a link shows.", "WHAT A LINK SHOWS"}) {
    for (const uint32_t cut : {2, 3}) {
      LinkOptions options = UpstreamOptions();
      options.secret = secret;
      options.cut = cut;
      options.run += cut;
      const absl::Status status = Dial(options).status();
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  EndsWith("the call does not show the secret of a run of this server"));
    }
  }
  EXPECT_TRUE(Dial(UpstreamOptions()).ok());
}

TEST_F(BoundaryServiceTest, NobodyListensWithoutASecret) {
  LinkOptions options = DownstreamOptions();
  options.cut = 4;
  options.secret.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(server_.service()->Listen(options).status()));
}

TEST_F(BoundaryServiceTest, AnotherRunIsRefusedNamingBoth) {
  LinkOptions options = UpstreamOptions();
  options.run = 78;
  const absl::Status status = Dial(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("dialled for run 78, cut layer3 is held by run 77"));
}

TEST_F(BoundaryServiceTest, AnotherGenerationIsRefusedNamingBoth) {
  for (const uint64_t generation : {4, 6}) {
    LinkOptions options = UpstreamOptions();
    options.generation = generation;
    const absl::Status status = Dial(options).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("dialled for generation ", generation,
                                       ", cut layer3 is held by generation 5")));
  }
}

TEST_F(BoundaryServiceTest, ACutWhereNobodyListensIsRefused) {
  LinkOptions options = UpstreamOptions();
  options.cut = 2;
  const absl::Status status = Dial(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no such cut is listened at"));
}

TEST_F(BoundaryServiceTest, ASecondDiallerIsRefusedAndTheFirstGoesOn) {
  const absl::StatusOr<std::unique_ptr<Link>> first = Dial(UpstreamOptions());
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = Dial(UpstreamOptions()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  (*first)->Send(TestMessage(DIRECTION_ACTIVATION, 10));
  EXPECT_TRUE(link_->Receive(TestDeadline()).ok());
}

TEST_F(BoundaryServiceTest, ARefusedDiallerDoesNotTakeThePlace) {
  LinkOptions options = UpstreamOptions();
  options.generation = 4;
  EXPECT_FALSE(Dial(options).ok());
  EXPECT_TRUE(Dial(UpstreamOptions()).ok());
}

TEST_F(BoundaryServiceTest, ACutIsListenedAtOnceUntilItsLinkIsDestroyed) {
  EXPECT_TRUE(absl::IsFailedPrecondition(server_.service()->Listen(DownstreamOptions()).status()));
  LinkOptions next = DownstreamOptions();
  next.generation = 6;
  Listen(next);
  EXPECT_TRUE(absl::IsFailedPrecondition(Dial(UpstreamOptions()).status()));
}

// Calls of a run that was ended keep their links for a while.
TEST_F(BoundaryServiceTest, AClosedLinkMakesRoomForTheNextAndLeavesItThere) {
  LinkOptions options = DownstreamOptions();
  options.generation = 6;
  link_->Close(absl::CancelledError("the run was released"));
  const absl::StatusOr<std::unique_ptr<Link>> next = server_.service()->Listen(options);
  ASSERT_TRUE(next.ok()) << next.status();
  link_ = nullptr;
  options = UpstreamOptions();
  options.generation = 6;
  const absl::StatusOr<std::unique_ptr<Link>> upstream = Dial(options);
  EXPECT_TRUE(upstream.ok()) << upstream.status();
}

TEST_F(BoundaryServiceTest, TheUpstreamStageOfAServerThatStoppedIsToldSo) {
  const absl::StatusOr<std::unique_ptr<Link>> upstream = Dial(UpstreamOptions());
  ASSERT_TRUE(upstream.ok()) << upstream.status();
  server_.Stop();
  const absl::Status status = (*upstream)->Receive(TestDeadline()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cut layer3, from stage 4: the peer"));
  EXPECT_FALSE((*upstream)->Flush(TestDeadline()).ok());
}

TEST(DialLinkTest, AnAddressWhereNothingListensIsUnavailableAtTheDeadline) {
  const absl::Status status = DialLink("unix:/nonexistent/link.sock", UpstreamOptions(), Security(),
                                       SteadyTime::Now() + absl::Milliseconds(50))
                                  .status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut layer3: stage 4 at unix:/nonexistent/link.sock has not accepted the "
                        "boundary"));
}

TEST(DialLinkTest, WhoStopsItDoesNotWaitForTheDeadline) {
  int asked = 0;
  const absl::Status status =
      DialLink("unix:/nonexistent/link.sock", UpstreamOptions(), Security(), TestDeadline(),
               [&asked] { return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("enough"); })
          .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("has not accepted the boundary: enough"));
}

TEST_F(BoundaryServiceTest, APeerThatEndsBetweenMessagesIsUnavailableAfterTheMessage) {
  RawPeer peer(server_.address());
  peer.Write(GoodFrames(1000)[0]);
  peer.WritesDone();
  EXPECT_TRUE(link_->Receive(TestDeadline()).ok());
  const absl::Status status = link_->Receive(TestDeadline()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut layer3, from stage 3: the peer closed the stream"));
}

TEST_F(BoundaryServiceTest, APeerThatEndsWithinAMessageIsUnavailableAndItIsSaidWhere) {
  RawPeer peer(server_.address());
  peer.Write(GoodFrames(9 << 20)[0]);
  peer.WritesDone();
  const absl::Status status = link_->Receive(TestDeadline()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("in the middle of a message, after 1 chunk"));
}

TEST_F(BoundaryServiceTest, AFrameOverGrpcsOwnLimitEndsTheStream) {
  RawPeer peer(server_.address());
  peer.Write(std::string(kMaxFrameBytes + 1, 'x'));
  EXPECT_TRUE(absl::IsUnavailable(link_->Receive(TestDeadline()).status()));
  EXPECT_FALSE(peer.End().ok());
}

struct BadPeer {
  std::string name;
  absl::StatusCode code;
  std::string says;
  std::function<void(RawPeer*)> write;
};

void PrintTo(const BadPeer& bad, std::ostream* out) { *out << bad.name; }

class BadPeerTest : public BoundaryServiceTest, public ::testing::WithParamInterface<BadPeer> {};

TEST_P(BadPeerTest, EndsTheLinkWithAnErrorThatBothSidesSee) {
  {
    RawPeer peer(server_.address());
    GetParam().write(&peer);
    absl::Status status;
    while (status.ok()) status = link_->Receive(TestDeadline()).status();
    EXPECT_EQ(status.code(), GetParam().code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cut layer3, from stage 3: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().says));
    const grpc::Status end = peer.End();
    EXPECT_EQ(static_cast<int>(end.error_code()), static_cast<int>(GetParam().code))
        << end.error_message();
  }
  // The cut is free again for a better peer.
  Listen(DownstreamOptions());
  EXPECT_TRUE(Dial(UpstreamOptions()).ok());
}

void WriteChanged(RawPeer* peer, const std::function<void(Frame*)>& change) {
  Frame frame = GoodFrames(1000)[0];
  change(&frame);
  peer->Write(frame);
}

std::vector<BadPeer> BadPeers() {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kFenced = absl::StatusCode::kFailedPrecondition;
  constexpr auto kLost = absl::StatusCode::kDataLoss;
  return {
      {"Garbage", kInvalid, "frame", [](RawPeer* peer) { peer->Write(std::string(1000, '\xAB')); }},
      {"EmptyFrame", kInvalid, "no header", [](RawPeer* peer) { peer->Write(std::string()); }},
      {"SharedMemoryThatThereIsNot", kInvalid, "no such memory",
       [](RawPeer* peer) { peer->Write(std::string("\x07\0\0\0\0\0\x40\0\0", 9)); }},
      {"TruncatedFrame", kInvalid, "frame ends in the payload",
       [](RawPeer* peer) {
         const std::string bytes = GoodFrames(1000)[0].SerializeAsString();
         peer->Write(bytes.substr(0, bytes.size() - 1));
       }},
      {"PayloadBitFlipped", kLost, "came by the socket",
       [](RawPeer* peer) {
         WriteChanged(peer, [](Frame* frame) { (*frame->mutable_payload())[500] ^= 4; });
       }},
      {"HeaderBitFlipped", kLost, "header_crc32c",
       [](RawPeer* peer) {
         WriteChanged(peer, [](Frame* frame) {
           frame->mutable_header()->set_step(frame->header().step() ^ 1);
         });
       }},
      {"LowerGeneration", kFenced, "generation of the frame is 4, this stage holds 5",
       [](RawPeer* peer) {
         WriteChanged(peer, [](Frame* frame) {
           frame->mutable_header()->set_generation(4);
           SealHeader(frame);
         });
       }},
      {"WrongDirection", kInvalid, "direction is 2, want 1",
       [](RawPeer* peer) {
         WriteChanged(peer, [](Frame* frame) {
           frame->mutable_header()->set_direction(DIRECTION_GRADIENT);
           SealHeader(frame);
         });
       }},
      {"OversizeClaim", kInvalid, "payload_bytes is 2147483648",
       [](RawPeer* peer) {
         WriteChanged(peer, [](Frame* frame) {
           frame->mutable_header()->set_payload_bytes(uint64_t{2} << 30);
           frame->mutable_header()->set_chunks(512);
           SealHeader(frame);
         });
       }},
      {"MissingChunk", kInvalid, "chunk is 2, want 1",
       [](RawPeer* peer) {
         const std::vector<Frame> frames = GoodFrames(9 << 20);
         peer->Write(frames[0]);
         peer->Write(frames[2]);
       }},
  };
}

INSTANTIATE_TEST_SUITE_P(Refused, BadPeerTest, ::testing::ValuesIn(BadPeers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace thinwire
