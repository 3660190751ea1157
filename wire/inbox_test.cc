// Tests payloads that a device copies; link_test.cc of transport tests everything else.

#include "wire/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/status.h"
#include "tensor/cpu/device.h"
#include "wire/link_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
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
  Error SubmitToShared(void* shared, const void* own, size_t bytes) override {
    return SubmitToHost(shared, own, bytes);
  }
  Error SubmitFromShared(void* own, const void* shared, size_t bytes) override {
    return SubmitFromHost(own, shared, bytes);
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
  PeerMemory* peer_memory() override { return nullptr; }
};

// Tests with payloads in either kind of memory that a device reads.
class DirectInboxTest : public testing::TestWithParam<PayloadPlace> {
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
  // prefix and the payload's first `within_prefix` bytes, the second the rest. Returns the first
  // error.
  absl::Status PushTo(Inbox* inbox, const Message& message, PayloadPlace place,
                      size_t within_prefix) {
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
      incoming.place = place;
      incoming.lock_pages = [this] { return ++locks_ <= most_locks_; };
      incoming.came_by = "a slot";
      RETURN_IF_ERROR(inbox->Push(incoming));
    }
    return absl::OkStatus();
  }
  absl::Status Push(const Message& message) {
    return PushTo(&inbox_, message, GetParam(), /*within_prefix=*/0);
  }
  absl::StatusOr<Message> Receive() { return inbox_.Receive(SteadyTime(), ""); }

  LateCopies copies_;
  int locks_ = 0, most_locks_ = 100;  // asked for, and given
  Inbox inbox_;
  std::vector<std::shared_ptr<std::vector<uint8_t>>> slots_;
};

INSTANTIATE_TEST_SUITE_P(Places, DirectInboxTest,
                         testing::Values(PayloadPlace::kLocked, PayloadPlace::kDevice));

TEST_P(DirectInboxTest, AnExactMessageIsGatheredByTheDevice) {
  for (const size_t bytes : {size_t{5}, kMaxChunkBytes, 3 * kMaxChunkBytes + 5}) {
    const Message sent = Exact(bytes);
    ASSERT_TRUE(Push(sent).ok());
    const absl::StatusOr<Message> received = Receive();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(received->payload.device, CpuDevice());
    EXPECT_TRUE(SameMessage(*received, sent));
  }
}

TEST_P(DirectInboxTest, AChunkIsHeldUntilItIsCopiedAndNoLonger) {
  ASSERT_TRUE(Push(Exact(3 * kMaxChunkBytes)).ok());
  ASSERT_TRUE(Receive().ok());
  for (const auto& slot : slots_) EXPECT_EQ(slot.use_count(), 1);
}

TEST_P(DirectInboxTest, WhatACodecMadeIsGatheredWhereItIsDecoded) {
  for (const bool on_device : {false, true}) {
    LinkOptions options = WithDevice(&copies_);
    options.decodes_on_device = [&](const CodecSpec&) { return on_device; };
    Inbox inbox(options);
    const Message sent = TestMessage(DIRECTION_ACTIVATION, 2 * kMaxChunkBytes + 5);
    ASSERT_TRUE(PushTo(&inbox, sent, GetParam(), /*within_prefix=*/0).ok());
    const absl::StatusOr<Message> received = inbox.Receive(SteadyTime(), "");
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(received->payload.device, on_device ? CpuDevice() : nullptr);
    EXPECT_TRUE(SameMessage(*received, sent));
  }
}

TEST_P(DirectInboxTest, WhatThePeerChangesBeforeItIsCopiedIsRefused) {
  for (const Message& sent : {Exact(2 * kMaxChunkBytes), TestMessage(DIRECTION_ACTIVATION, 1000)}) {
    Inbox inbox(WithDevice(&copies_));
    ASSERT_TRUE(PushTo(&inbox, sent, GetParam(), /*within_prefix=*/0).ok());
    (*slots_.back())[17] ^= 1;
    const absl::Status status = inbox.Receive(SteadyTime(), "").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("payload_crc32c of chunk"), HasSubstr("came by a slot, give")));
  }
}

class LockedInboxTest : public DirectInboxTest {};
INSTANTIATE_TEST_SUITE_P(Locked, LockedInboxTest, testing::Values(PayloadPlace::kLocked));

TEST_P(LockedInboxTest, PagesAreLockedWhereTheDeviceCopiesOnly) {
  ASSERT_TRUE(Push(TestMessage(DIRECTION_ACTIVATION, 1000)).ok());
  ASSERT_TRUE(Receive().ok());
  EXPECT_EQ(locks_, 0);
  ASSERT_TRUE(Push(Exact(1000)).ok());
  ASSERT_TRUE(Receive().ok());
  EXPECT_GT(locks_, 0);
}

// The first chunk asks twice: where the message is gathered depends on it.
TEST_P(LockedInboxTest, TheHostCopiesFromPagesThatCannotBeLocked) {
  for (const int locks : {0, 2}) {
    locks_ = 0;
    most_locks_ = locks;
    const Message sent = Exact(2 * kMaxChunkBytes);
    ASSERT_TRUE(Push(sent).ok());
    const absl::StatusOr<Message> received = Receive();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(received->payload.device, locks == 0 ? nullptr : CpuDevice());
    EXPECT_TRUE(SameMessage(*received, sent));
  }
}

// A device reads aligned, from where a payload should begin, whatever the peer's frame says.
TEST_P(LockedInboxTest, APayloadThatBeginsElsewhereIsGatheredOnTheHost) {
  const Message sent = Exact(1000);
  ASSERT_TRUE(PushTo(&inbox_, sent, PayloadPlace::kLocked, /*within_prefix=*/3).ok());
  const absl::StatusOr<Message> received = Receive();
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->payload.device, nullptr);
  EXPECT_TRUE(SameMessage(*received, sent));
}

// Memory that ends a program that reads it, as a device's may.
class Unreadable {
 public:
  static constexpr size_t kBytes = 4096;
  Unreadable() : memory_(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Unreadable() { munmap(memory_, kBytes); }
  ByteSpan bytes() const { return {static_cast<const uint8_t*>(memory_), kBytes}; }

 private:
  void* const memory_;
};

TEST(UnreadableInboxTest, NothingOfADevicesMemoryIsReadWhateverTheFrameSays) {
  LateCopies copies;
  LinkOptions options = DownstreamOptions();
  options.device = CpuDevice();
  options.copies = &copies;
  const Unreadable memory;
  Message message = TestMessage(DIRECTION_ACTIVATION, Unreadable::kBytes);
  const OutgoingFrame good = ToFrame(message, 77, 5, /*chunk=*/0, /*payload_crc32c=*/1);
  const auto push = [&](const std::string& prefix) {
    Inbox inbox(options);
    IncomingFrame frame;
    frame.parts = {BytesOf(prefix), memory.bytes()};
    frame.place = PayloadPlace::kDevice;
    return inbox.Push(frame);
  };
  EXPECT_TRUE(push(good.prefix).ok());
  // Every prefix of the prefix would have some field continue in the device's memory.
  for (size_t length = 0; length < good.prefix.size(); ++length) {
    EXPECT_TRUE(absl::IsInvalidArgument(push(good.prefix.substr(0, length)))) << length;
  }
  // The payload's length, a varint of two bytes, stands last: other lengths, and other fields.
  const std::string before = good.prefix.substr(0, good.prefix.size() - 3);
  for (const std::string& last :
       {std::string("\x1a\x00", 2), std::string("\x1a\xff\x1f"), std::string("\x1a\x81\x20"),
        std::string("\x22\x80\x20"), std::string("\x0a\x80\x20"), std::string("\x15"),
        std::string("\x25"), std::string("\x29"), std::string("\x1a\x7f")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(push(before + last))) << last;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(push(good.prefix + "x")));
}

}  // namespace
}  // namespace thinwire
