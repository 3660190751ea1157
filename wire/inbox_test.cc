// Tests payloads that a device copies; link_test.cc of transport tests everything else.

#include "wire/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "tensor/cpu/device.h"
#include "wire/link_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Copies as late as the interface allows.
class LateQueue final : public CopyQueue {
 public:
  Error SubmitToHost(void* host, const void* own, size_t bytes) override {
    copies_.push_back({host, own, bytes});
    return Error{};
  }
  Error SubmitFromHost(void* own, const void* host, size_t bytes) override {
    copies_.push_back({own, host, bytes});
    return Error{};
  }
  Error Await(uint32_t* crc32c) override {
    const Copy copy = copies_.front();
    copies_.pop_front();
    std::memcpy(copy.to, copy.from, copy.bytes);
    *crc32c = Crc32c(copy.to, copy.bytes);
    return Error{};
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  std::deque<Copy> copies_;
};

class LateCopies final : public DirectCopies {
 public:
  Error LockPages(void* /*memory*/, size_t /*bytes*/) override { return Error{}; }
  void UnlockPages(void* /*memory*/) override {}
  Error NewQueue(CopyQueue** queue) override {
    *queue = new LateQueue;
    return Error{};
  }
};

class DirectInboxTest : public testing::Test {
 protected:
  DirectInboxTest() : inbox_(WithDevice(&copies_)) {}

  // Returns options in which host memory stands in for a device's.
  static LinkOptions WithDevice(DirectCopies* copies) {
    LinkOptions options = DownstreamOptions();
    options.device = CpuDevice();
    options.copies = copies;
    return options;
  }

  static Message Exact(size_t bytes) {
    Message message = TestMessage(DIRECTION_ACTIVATION, bytes);
    message.codec = CodecSpec();
    return message;
  }

  // Pushes the chunks of the message from memory that the peer can write. The first part has the
  // prefix and the payload's first `within_prefix` bytes, the second the rest.
  void Push(const Message& message, size_t within_prefix = 0) {
    for (const OutgoingFrame& frame : ToFrames(message, 77, 5)) {
      const ByteSpan payload = frame.payload.bytes;
      const auto prefix = std::make_shared<std::string>(frame.prefix);
      prefix->append(payload.begin(), payload.begin() + within_prefix);
      slots_.push_back(
          std::make_shared<std::vector<uint8_t>>(payload.begin() + within_prefix, payload.end()));
      IncomingFrame incoming;
      incoming.parts = {BytesOf(*prefix), *slots_.back()};
      incoming.owner = std::make_shared<
          std::pair<std::shared_ptr<std::string>, std::shared_ptr<std::vector<uint8_t>>>>(
          prefix, slots_.back());
      incoming.is_direct = true;
      ASSERT_TRUE(inbox_.Push(incoming).ok());
    }
  }
  absl::StatusOr<Message> Receive() { return inbox_.Receive(SteadyTime(), ""); }

  LateCopies copies_;
  Inbox inbox_;
  std::vector<std::shared_ptr<std::vector<uint8_t>>> slots_;
};

TEST_F(DirectInboxTest, AnExactMessageIsGatheredByTheDevice) {
  for (const size_t bytes : {size_t{5}, kMaxChunkBytes, 3 * kMaxChunkBytes + 5}) {
    const Message sent = Exact(bytes);
    Push(sent);
    const absl::StatusOr<Message> received = Receive();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(received->payload.device, CpuDevice());
    EXPECT_TRUE(SameMessage(*received, sent));
  }
}

TEST_F(DirectInboxTest, AChunkIsHeldUntilItIsCopiedAndNoLonger) {
  Push(Exact(3 * kMaxChunkBytes));
  ASSERT_TRUE(Receive().ok());
  for (const auto& slot : slots_) EXPECT_EQ(slot.use_count(), 1);
}

TEST_F(DirectInboxTest, WhatACodecMadeIsGatheredOnTheHost) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 1000);
  Push(sent);
  const absl::StatusOr<Message> received = Receive();
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->payload.device, nullptr);
  EXPECT_TRUE(SameMessage(*received, sent));
}

TEST_F(DirectInboxTest, WhatThePeerChangesBeforeItIsCopiedIsRefused) {
  Push(Exact(2 * kMaxChunkBytes));
  (*slots_[1])[17] ^= 1;
  const absl::Status status = Receive().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("payload_crc32c of chunk 1"));
}

// A device reads aligned, from where a payload should begin, whatever the peer's frame says.
TEST_F(DirectInboxTest, APayloadThatBeginsElsewhereIsGatheredOnTheHost) {
  const Message sent = Exact(1000);
  Push(sent, /*within_prefix=*/3);
  const absl::StatusOr<Message> received = Receive();
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->payload.device, nullptr);
  EXPECT_TRUE(SameMessage(*received, sent));
}

}  // namespace
}  // namespace thinwire
