// Tests links whose ends have a device, on the emulator: what device copies carry and what falls
// back to the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/steady_time.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/direct_copies.h"
#include "tensor/cuda/error.h"
#include "tensor/tensor.h"
#include "transport/link_testing.h"
#include "wire/frame.h"
#include "wire/link.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CudaDevice* TheDevice() {
  static CudaDevice* const device = [] {
    CudaDevice* opened = nullptr;
    EXPECT_TRUE(NewCudaDevice(0, &opened).ok());
    return opened;
  }();
  return device;
}

DirectCopies* TheCopies() {
  static DirectCopies* const copies = NewCudaDirectCopies(TheDevice()).release();
  return copies;
}

LinkOptions OnDevice(LinkOptions options, DirectCopies* copies = TheCopies()) {
  options.device = TheDevice();
  options.host = TheDevice()->host();
  options.copies = copies;
  return options;
}

std::vector<uint8_t> BytesOf(const Payload& payload) {
  std::vector<uint8_t> bytes(payload.bytes.size());
  if (payload.device == nullptr) {
    std::memcpy(bytes.data(), payload.bytes.data(), bytes.size());
  } else {
    EXPECT_EQ(payload.device, TheDevice());
    EXPECT_TRUE(TheDevice()->CopyToHost(bytes.data(), payload.bytes.data(), bytes.size()).ok());
  }
  return bytes;
}

Message ExactMessage(Direction direction, size_t bytes, uint32_t microbatch = 0) {
  Message message = TestMessage(direction, bytes, microbatch);
  message.codec = CodecSpec();
  return message;
}

// Returns the same message with its payload in the device's memory.
Message SentFrom(Device* device, Message message) {
  const ByteSpan bytes = message.payload.bytes;
  auto buffer = *Buffer::Allocate(device, bytes.size());
  EXPECT_TRUE(device->CopyFromHost(buffer->data(), bytes.data(), bytes.size()).ok());
  const auto* const data = static_cast<const uint8_t*>(buffer->data());
  message.payload = {std::move(buffer), {data, bytes.size()}, device};
  return message;
}

// Returns options of an end that decodes every codec's payloads on the device.
LinkOptions Decoding(LinkOptions options) {
  options.decodes_on_device = [](const CodecSpec&) { return true; };
  return options;
}

// The device's memory for peers, which the process that has it opens, too. With `lies` blocks are
// smaller than what was asked for. Any thread.
class LoopedMemory final : public PeerMemory {
 public:
  explicit LoopedMemory(bool lies) : lies_(lies) {}

  Error Allocate(size_t bytes, void** memory, PeerMemoryHandle* handle) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    *handle = {};
    handle->bytes[0] = static_cast<uint8_t>(++allocated_);
    const size_t blocks = lies_ ? 1 : (bytes + kLittle - 1) / kLittle;
    const Error error = CudaError(cudaMalloc(memory, blocks * kLittle), "cudaMalloc");
    by_handle_[handle->bytes[0]] = *memory;
    return error;
  }
  void Free(void* memory) override { EXPECT_EQ(cudaFree(memory), cudaSuccess); }
  Error Open(const PeerMemoryHandle& handle, void** memory) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    *memory = by_handle_.at(handle.bytes[0]);
    ++opened_;
    return Error{};
  }
  void Close(void* /*memory*/) override { --opened_; }

  int opened() const { return opened_; }

 private:
  static constexpr size_t kLittle = 2 << 20;

  const bool lies_;
  std::mutex mutex_;
  int allocated_ = 0;
  std::map<uint8_t, void*> by_handle_;
  std::atomic<int> opened_{0};
};

// The device's copies with that memory, so that both ends of a link may be in one process.
class LoopedCopies final : public DirectCopies {
 public:
  explicit LoopedCopies(bool lies = false) : memory_(lies) {}
  Error LockPages(void* memory, size_t bytes) override {
    return TheCopies()->LockPages(memory, bytes);
  }
  void UnlockPages(void* memory) override { TheCopies()->UnlockPages(memory); }
  Error NewQueue(CopyQueue** queue) override { return TheCopies()->NewQueue(queue); }
  PeerMemory* peer_memory() override { return &memory_; }

  int opened() const { return memory_.opened(); }

 private:
  LoopedMemory memory_;
};

class DeviceLinkTest : public testing::Test {
 protected:
  // Sends the message to the downstream end and checks what arrives. `on_device` says whether its
  // payload must be in the device's memory.
  void ExpectArrives(ConnectedLinks* links, const Message& message, bool on_device) {
    const absl::StatusOr<Message> received = links->downstream->Receive(TestDeadline());
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(received->payload.device != nullptr, on_device);
    EXPECT_EQ(BytesOf(received->payload), BytesOf(message.payload));
    EXPECT_EQ(received->key, message.key);
  }
};

TEST_F(DeviceLinkTest, AnExactMessageGoesFromDeviceToDevice) {
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()),
                       OnDevice(DownstreamOptions()));
  EXPECT_EQ(links.upstream->sends_from(), TheDevice());
  // Parts of a chunk, whole chunks, and a last chunk small enough to be as fast by the socket.
  for (const size_t bytes : {kMaxChunkBytes / 3, kMaxChunkBytes, 2 * kMaxChunkBytes + 100000,
                             3 * kMaxChunkBytes + 1000}) {
    const Message message = ExactMessage(DIRECTION_ACTIVATION, bytes);
    EXPECT_EQ(links.upstream->Send(SentFrom(TheDevice(), message)),
              WireBytes(message, bytes, /*run=*/77, /*generation=*/5));
    EXPECT_EQ(links.upstream->last_way(), Way::kDeviceCopies);
    ExpectArrives(&links, message, /*on_device=*/true);
  }
}

TEST_F(DeviceLinkTest, TheGradientGoesBackLikewise) {
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()),
                       OnDevice(DownstreamOptions()));
  const Message message = ExactMessage(DIRECTION_GRADIENT, 5 << 20);
  links.downstream->Send(SentFrom(TheDevice(), message));
  EXPECT_EQ(links.downstream->last_way(), Way::kDeviceCopies);
  const absl::StatusOr<Message> received = links.upstream->Receive(TestDeadline());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->payload.device, TheDevice());
  EXPECT_EQ(BytesOf(received->payload), BytesOf(message.payload));
}

TEST_F(DeviceLinkTest, EitherEndMayHaveNoDevice) {
  const Message message = ExactMessage(DIRECTION_ACTIVATION, 9 << 20);
  {
    ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()), DownstreamOptions());
    links.upstream->Send(SentFrom(TheDevice(), message));
    EXPECT_EQ(links.upstream->last_way(), Way::kDeviceCopies);
    ExpectArrives(&links, message, /*on_device=*/false);
  }
  ConnectedLinks links(Transport::kUnix, UpstreamOptions(), OnDevice(DownstreamOptions()));
  EXPECT_EQ(links.upstream->sends_from(), nullptr);
  links.upstream->Send(message);
  EXPECT_EQ(links.upstream->last_way(), Way::kHostCopies);
  ExpectArrives(&links, message, /*on_device=*/true);
}

TEST_F(DeviceLinkTest, WhatACodecMadeGoesFromDeviceToDevice) {
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()),
                       Decoding(OnDevice(DownstreamOptions())));
  for (const size_t bytes : {kLeastCodedOnDevice, 2 * kMaxChunkBytes + 99999}) {
    const Message message = TestMessage(DIRECTION_ACTIVATION, bytes);
    EXPECT_EQ(links.upstream->Send(SentFrom(TheDevice(), message)),
              WireBytes(message, bytes, /*run=*/77, /*generation=*/5));
    EXPECT_EQ(links.upstream->last_way(), Way::kDeviceCopies);
    ExpectArrives(&links, message, /*on_device=*/true);
  }
}

TEST_F(DeviceLinkTest, TheHostGathersWhatIsDecodedThereAndWhatIsShort) {
  const Message message = TestMessage(DIRECTION_ACTIVATION, 1 << 20);
  {
    ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()),
                         OnDevice(DownstreamOptions()));
    links.upstream->Send(SentFrom(TheDevice(), message));
    ExpectArrives(&links, message, /*on_device=*/false);
  }
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()),
                       Decoding(OnDevice(DownstreamOptions())));
  const Message little = TestMessage(DIRECTION_ACTIVATION, kLeastCodedOnDevice - 1);
  links.upstream->Send(SentFrom(TheDevice(), little));
  ExpectArrives(&links, little, /*on_device=*/false);
}

TEST_F(DeviceLinkTest, ADeviceTakesWhatACodecMadeOnTheHost) {
  ConnectedLinks links(Transport::kUnix, UpstreamOptions(),
                       Decoding(OnDevice(DownstreamOptions())));
  const Message message = TestMessage(DIRECTION_ACTIVATION, 5 << 20);
  links.upstream->Send(message);
  EXPECT_EQ(links.upstream->last_way(), Way::kHostCopies);
  ExpectArrives(&links, message, /*on_device=*/true);
}

TEST_F(DeviceLinkTest, OverTcpTheHostGathers) {
  ConnectedLinks links(Transport::kTcp, OnDevice(UpstreamOptions()), OnDevice(DownstreamOptions()));
  const Message message = ExactMessage(DIRECTION_ACTIVATION, 9 << 20);
  links.upstream->Send(SentFrom(TheDevice(), message));
  EXPECT_EQ(links.upstream->last_way(), Way::kSocket);
  ExpectArrives(&links, message, /*on_device=*/false);
}

TEST_F(DeviceLinkTest, NothingHoldsThePayloadWhenItHasLeft) {
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()),
                       OnDevice(DownstreamOptions()));
  Message message = SentFrom(TheDevice(), ExactMessage(DIRECTION_ACTIVATION, 9 << 20));
  const std::weak_ptr<const void> payload = message.payload.owner;
  links.upstream->Send(std::move(message));
  EXPECT_TRUE(payload.expired());
}

// Tests with small messages, of which there is room for 32.
class DeviceLinkRoomTest : public DeviceLinkTest {
 protected:
  static constexpr size_t kBytes = 64 << 10;
  static constexpr int kRoom = 32;

  DeviceLinkRoomTest()
      : upstream_(Small(UpstreamOptions())), downstream_(Small(DownstreamOptions())) {}
  static LinkOptions Small(LinkOptions options) {
    options.max_payload_bytes = kBytes;
    options.queue_capacity = 2 * kRoom;
    return OnDevice(options);
  }
  static Message Exact(int microbatch) {
    return ExactMessage(DIRECTION_ACTIVATION, kBytes, static_cast<uint32_t>(microbatch));
  }

  LinkOptions upstream_, downstream_;
};

TEST_F(DeviceLinkRoomTest, IsWaitedForAndNothingGoesByTheSocket) {
  upstream_.room_patience = absl::Seconds(30);
  ConnectedLinks links(Transport::kUnix, upstream_, downstream_);
  std::thread sender([&] {
    for (int i = 0; i < 2 * kRoom; ++i) {
      links.upstream->Send(SentFrom(TheDevice(), Exact(i)));
      EXPECT_EQ(links.upstream->last_way(), Way::kDeviceCopies) << i;
    }
  });
  for (int i = 0; i < 2 * kRoom; ++i) ExpectArrives(&links, Exact(i), /*on_device=*/true);
  sender.join();
}

TEST_F(DeviceLinkRoomTest, WithoutPatienceTheSocketCarriesTheRestInItsPlace) {
  ConnectedLinks links(Transport::kUnix, upstream_, downstream_);
  for (int i = 0; i < kRoom + 3; ++i) {
    links.upstream->Send(SentFrom(TheDevice(), Exact(i)));
    EXPECT_EQ(links.upstream->last_way(), i < kRoom ? Way::kDeviceCopies : Way::kSocket) << i;
  }
  for (int i = 0; i < kRoom + 3; ++i) ExpectArrives(&links, Exact(i), /*on_device=*/i < kRoom);
}

TEST_F(DeviceLinkRoomTest, AWaitForItEndsWithTheLink) {
  upstream_.room_patience = absl::Hours(1);
  ConnectedLinks links(Transport::kUnix, upstream_, downstream_);
  std::thread sender([&] {
    for (int i = 0; i <= kRoom; ++i) links.upstream->Send(SentFrom(TheDevice(), Exact(i)));
  });
  ExpectArrives(&links, Exact(0), /*on_device=*/true);
  links.upstream->Close(absl::CancelledError("the test ends it"));
  sender.join();
}

// A device whose host refuses to lock pages.
class NoLocks final : public DirectCopies {
 public:
  Error LockPages(void* /*memory*/, size_t /*bytes*/) override {
    return MakeError(absl::StatusCode::kInternal, "cudaHostRegister: operation not supported");
  }
  void UnlockPages(void* /*memory*/) override { ADD_FAILURE() << "of what is not locked"; }
  Error NewQueue(CopyQueue** queue) override { return TheCopies()->NewQueue(queue); }
  PeerMemory* peer_memory() override { return nullptr; }
};

TEST_F(DeviceLinkTest, WithoutLockedPagesTheCpuCopiesAndItIsToldOnce) {
  NoLocks copies;
  LinkOptions upstream = OnDevice(UpstreamOptions(), &copies);
  std::vector<std::string> notes;
  upstream.on_note = [&](const std::string& note) { notes.push_back(note); };
  ConnectedLinks links(Transport::kUnix, upstream, OnDevice(DownstreamOptions()));
  const Message message = ExactMessage(DIRECTION_ACTIVATION, 9 << 20);
  for (int i = 0; i < 2; ++i) {
    links.upstream->Send(SentFrom(TheDevice(), message));
    EXPECT_EQ(links.upstream->last_way(), Way::kHostCopies);
    ExpectArrives(&links, message, /*on_device=*/true);
  }
  EXPECT_THAT(notes, ElementsAre(HasSubstr("operation not supported")));
}

// Copies that fail from the second on.
class FailingQueue final : public CopyQueue {
 public:
  Error SubmitToHost(void* /*host*/, const void* /*own*/, size_t /*bytes*/) override {
    return ++submitted_ == 1 ? Error{} : Failure();
  }
  Error SubmitFromHost(void* /*own*/, const void* /*host*/, size_t /*bytes*/) override {
    return Failure();
  }
  Error SubmitToShared(void* /*shared*/, const void* /*own*/, size_t /*bytes*/) override {
    return Failure();
  }
  Error SubmitFromShared(void* /*own*/, const void* /*shared*/, size_t /*bytes*/) override {
    return Failure();
  }
  Error Await(uint32_t* crc32c) override {
    *crc32c = 0;
    return Error{};
  }

 private:
  static Error Failure() {
    return MakeError(absl::StatusCode::kInternal, "cudaMemcpyAsync: unknown error");
  }
  int submitted_ = 0;
};

class FailingCopies final : public DirectCopies {
 public:
  Error LockPages(void* /*memory*/, size_t /*bytes*/) override { return Error{}; }
  void UnlockPages(void* /*memory*/) override {}
  Error NewQueue(CopyQueue** queue) override {
    *queue = new FailingQueue;
    return Error{};
  }
  PeerMemory* peer_memory() override { return nullptr; }
};

TEST_F(DeviceLinkTest, AFailureOfTheSendersDeviceEndsTheLinkAndIsItsReason) {
  FailingCopies copies;
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions(), &copies),
                       OnDevice(DownstreamOptions()));
  links.upstream->Send(SentFrom(TheDevice(), ExactMessage(DIRECTION_ACTIVATION, 9 << 20)));
  const absl::Status status = links.upstream->Receive(TestDeadline()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut layer3, from stage 4: cudaMemcpyAsync: unknown error"));
}

TEST_F(DeviceLinkTest, AFailureOfTheReceiversDeviceEndsTheLinkAndIsItsReason) {
  FailingCopies copies;
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions()),
                       OnDevice(DownstreamOptions(), &copies));
  links.upstream->Send(SentFrom(TheDevice(), ExactMessage(DIRECTION_ACTIVATION, 9 << 20)));
  const absl::Status status = links.downstream->Receive(TestDeadline()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("cudaMemcpyAsync: unknown error"));
}

// Tests with slots in the memory of a device that both ends have.
class DeviceSlotsLinkTest : public DeviceLinkTest {
 protected:
  DeviceSlotsLinkTest()
      : upstream_(OnDevice(UpstreamOptions(), &copies_)),
        downstream_(OnDevice(DownstreamOptions(), &copies_)) {}

  LoopedCopies copies_;
  LinkOptions upstream_, downstream_;
};

TEST_F(DeviceSlotsLinkTest, AnExactMessageNeverLeavesTheDevice) {
  {
    ConnectedLinks links(Transport::kUnix, upstream_, downstream_);
    EXPECT_EQ(copies_.opened(), 2);
    for (const size_t bytes : {kMaxChunkBytes / 3, kMaxChunkBytes, 2 * kMaxChunkBytes + 100000,
                               3 * kMaxChunkBytes + 1000}) {
      const Message message = ExactMessage(DIRECTION_ACTIVATION, bytes);
      EXPECT_EQ(links.upstream->Send(SentFrom(TheDevice(), message)),
                WireBytes(message, bytes, /*run=*/77, /*generation=*/5));
      EXPECT_EQ(links.upstream->last_way(), Way::kDeviceSlots);
      ExpectArrives(&links, message, /*on_device=*/true);
    }
    const Message message = ExactMessage(DIRECTION_GRADIENT, 5 << 20);
    links.downstream->Send(SentFrom(TheDevice(), message));
    EXPECT_EQ(links.downstream->last_way(), Way::kDeviceSlots);
    const absl::StatusOr<Message> received = links.upstream->Receive(TestDeadline());
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(BytesOf(received->payload), BytesOf(message.payload));
  }
  EXPECT_EQ(copies_.opened(), 0);
}

TEST_F(DeviceSlotsLinkTest, WhatACodecMadeNeverLeavesTheDevice) {
  ConnectedLinks links(Transport::kUnix, upstream_, Decoding(downstream_));
  for (const size_t bytes : {kLeastCodedOnDevice, 2 * kMaxChunkBytes + 99999}) {
    const Message message = TestMessage(DIRECTION_ACTIVATION, bytes);
    links.upstream->Send(SentFrom(TheDevice(), message));
    EXPECT_EQ(links.upstream->last_way(), Way::kDeviceSlots);
    ExpectArrives(&links, message, /*on_device=*/true);
  }
}

TEST_F(DeviceSlotsLinkTest, AReceiverThatDecodesOnTheHostCopiesItThere) {
  ConnectedLinks links(Transport::kUnix, upstream_, downstream_);
  const Message message = TestMessage(DIRECTION_ACTIVATION, 5 << 20);
  links.upstream->Send(SentFrom(TheDevice(), message));
  EXPECT_EQ(links.upstream->last_way(), Way::kDeviceSlots);
  ExpectArrives(&links, message, /*on_device=*/false);
}

TEST_F(DeviceSlotsLinkTest, ChunksOfOneMessageMayTakeEveryWay) {
  constexpr int kDeviceSlots = 16, kHostSlots = 32;
  for (LinkOptions* options : {&upstream_, &downstream_}) {
    options->queue_capacity = kDeviceSlots + kHostSlots;
  }
  // One slot of each kind is left: the third of three chunks takes the socket.
  ConnectedLinks links(Transport::kUnix, upstream_, Decoding(downstream_));
  const auto coded = [](int microbatch, size_t bytes) {
    return TestMessage(DIRECTION_ACTIVATION, bytes, static_cast<uint32_t>(microbatch));
  };
  constexpr int kBefore = kDeviceSlots - 1 + kHostSlots - 1;
  for (int i = 0; i < kHostSlots - 1; ++i) links.upstream->Send(coded(i, 64 << 10));
  for (int i = kHostSlots - 1; i < kBefore; ++i) {
    links.upstream->Send(SentFrom(TheDevice(), coded(i, 64 << 10)));
    EXPECT_EQ(links.upstream->last_way(), Way::kDeviceSlots) << i;
  }
  const Message last = coded(kBefore, 2 * kMaxChunkBytes + 99999);
  links.upstream->Send(SentFrom(TheDevice(), last));
  EXPECT_EQ(links.upstream->last_way(), Way::kSocket);
  for (int i = 0; i < kBefore; ++i) ExpectArrives(&links, coded(i, 64 << 10), /*on_device=*/true);
  ExpectArrives(&links, last, /*on_device=*/true);
}

TEST_F(DeviceSlotsLinkTest, WithoutAFreeSlotItGoesByTheHostInItsPlace) {
  constexpr int kMessages = 32, kSlots = 16;
  for (LinkOptions* options : {&upstream_, &downstream_}) {
    options->max_payload_bytes = 64 << 10;
    options->queue_capacity = kMessages;
  }
  ConnectedLinks links(Transport::kUnix, upstream_, downstream_);
  const auto exact = [](int microbatch) {
    return ExactMessage(DIRECTION_ACTIVATION, 64 << 10, static_cast<uint32_t>(microbatch));
  };
  for (int i = 0; i < kMessages; ++i) {
    links.upstream->Send(SentFrom(TheDevice(), exact(i)));
    EXPECT_EQ(links.upstream->last_way(), i < kSlots ? Way::kDeviceSlots : Way::kDeviceCopies) << i;
  }
  for (int i = 0; i < kMessages; ++i) ExpectArrives(&links, exact(i), /*on_device=*/true);
  links.upstream->Send(SentFrom(TheDevice(), exact(0)));
  EXPECT_EQ(links.upstream->last_way(), Way::kDeviceSlots);
  ExpectArrives(&links, exact(0), /*on_device=*/true);
}

TEST_F(DeviceSlotsLinkTest, AReceiverThatOwnsLessThanItSaysEndsTheLinkOnly) {
  LoopedCopies lying(/*lies=*/true);
  ConnectedLinks links(Transport::kUnix, OnDevice(UpstreamOptions(), &lying),
                       OnDevice(DownstreamOptions(), &lying));
  links.upstream->Send(SentFrom(TheDevice(), ExactMessage(DIRECTION_ACTIVATION, 9 << 20)));
  const absl::Status status = links.upstream->Receive(TestDeadline()).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut layer3, from stage 4: cudaMemcpyAsync"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("invalid argument"));
}

// CUDA opens no memory in the process that has it.
TEST_F(DeviceLinkTest, WithoutAHandleThatOpensTheHostsMemoryServesAndTheLogSaysWhy) {
  LinkOptions upstream = OnDevice(UpstreamOptions());
  std::vector<std::string> notes;
  upstream.on_note = [&](const std::string& note) { notes.push_back(note); };
  ConnectedLinks links(Transport::kUnix, upstream, OnDevice(DownstreamOptions()));
  const Message message = ExactMessage(DIRECTION_ACTIVATION, 9 << 20);
  for (int i = 0; i < 2; ++i) {
    links.upstream->Send(SentFrom(TheDevice(), message));
    EXPECT_EQ(links.upstream->last_way(), Way::kDeviceCopies);
    ExpectArrives(&links, message, /*on_device=*/true);
  }
  EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("cut layer3: messages between GPUs go through the "
                                                 "host's memory: cudaIpcOpenMemHandle"),
                                       HasSubstr("invalid device context"))));
}

}  // namespace
}  // namespace thinwire
