// Tests links between two processes whose devices are one emulated GPU: the memory of one is opened
// by the other, as CUDA wants it.
//
// The other process is this program, started with --peer=ROLE ADDRESS. It dials as the upstream
// stage and ends with status 0 if it has seen what its role says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/direct_copies.h"
#include "tensor/tensor.h"
#include "transport/dial.h"
#include "transport/link_testing.h"
#include "transport/raw_peer_testing.h"
#include "transport/shared_memory.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kBytes = 600'000;  // the emulator sums slowly under the thread sanitizer
constexpr int kMessages = 6;

CudaDevice* TheDevice() {
  static CudaDevice* const device = [] {
    CudaDevice* opened = nullptr;
    EXPECT_TRUE(NewCudaDevice(0, &opened).ok());
    return opened;
  }();
  return device;
}

LinkOptions OnDevice(LinkOptions options) {
  static DirectCopies* const copies = NewCudaDirectCopies(TheDevice()).release();
  options.device = TheDevice();
  options.host = TheDevice()->host();
  options.copies = copies;
  return options;
}

Message Exact(Direction direction, int microbatch) {
  Message message = TestMessage(direction, kBytes, static_cast<uint32_t>(microbatch));
  message.codec = CodecSpec();
  return message;
}

// Returns the same message with its payload in the device's memory.
Message SentFromDevice(Message message) {
  const ByteSpan bytes = message.payload.bytes;
  auto buffer = *Buffer::Allocate(TheDevice(), bytes.size());
  EXPECT_TRUE(TheDevice()->CopyFromHost(buffer->data(), bytes.data(), bytes.size()).ok());
  const auto* const data = static_cast<const uint8_t*>(buffer->data());
  message.payload = {std::move(buffer), {data, bytes.size()}, TheDevice()};
  return message;
}

// Returns whether the next message is that of the microbatch, in the device's memory.
bool Arrives(Link* link, Direction direction, int microbatch) {
  const absl::StatusOr<Message> received = link->Receive(TestDeadline());
  EXPECT_TRUE(received.ok()) << received.status();
  if (!received.ok() || received->payload.device != TheDevice()) return false;
  std::vector<uint8_t> bytes(received->payload.bytes.size());
  EXPECT_TRUE(
      TheDevice()->CopyToHost(bytes.data(), received->payload.bytes.data(), bytes.size()).ok());
  const Message sent = Exact(direction, microbatch);
  return received->key == sent.key && ByteSpan(bytes) == sent.payload.bytes;
}

// The roles of the other process.

// Sends an activation and receives a gradient, again and again; what it sends must go that way.
int Exchange(Link* link, Way way) {
  for (int i = 0; i < kMessages; ++i) {
    link->Send(SentFromDevice(Exact(DIRECTION_ACTIVATION, i)));
    if (link->last_way() != way) return 3;
    if (!Arrives(link, DIRECTION_GRADIENT, i)) return 4;
  }
  return 0;
}

// Sends two messages and then holds whatever comes, until it is killed.
int Hold(Link* link) {
  for (int i = 0; i < 2; ++i) link->Send(SentFromDevice(Exact(DIRECTION_ACTIVATION, i)));
  for (;;) pause();
}

int Peer(const std::string& role, const std::string& address) {
  const absl::StatusOr<std::unique_ptr<Link>> link =
      DialLink(address, OnDevice(UpstreamOptions()), Security(), TestDeadline());
  if (!link.ok()) return 2;
  if (role == "slots") return Exchange(link->get(), Way::kDeviceSlots);
  if (role == "copies") return Exchange(link->get(), Way::kDeviceCopies);
  return Hold(link->get());
}

class TwoProcessesTest : public testing::Test {
 protected:
  TwoProcessesTest() : server_(TestServer::Socket::kUnix) {
    LinkOptions options = OnDevice(DownstreamOptions());
    options.on_note = [this](const std::string& note) { notes_.push_back(note); };
    options.on_frame = [this] { ++frames_; };
    link_ = *server_.service()->Listen(options);
  }
  ~TwoProcessesTest() override { Kill(); }

  // Starts the other process with `setting` in its environment.
  void Start(const std::string& role, std::string setting = "THINWIRE_EMULATED_IPC=1") {
    std::string program = "/proc/self/exe", flag = "--peer=" + role, address = server_.address();
    char* arguments[] = {program.data(), flag.data(), address.data(), nullptr};
    std::vector<char*> variables = {setting.data()};
    for (char** variable = environ; *variable != nullptr; ++variable)
      variables.push_back(*variable);
    variables.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&child_, program.c_str(), nullptr, nullptr, arguments, variables.data()),
              0);
  }
  // Waits for its end and returns its status.
  int Ended() {
    int status = -1;
    EXPECT_GT(waitpid(std::exchange(child_, 0), &status, 0), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Kill() {
    if (child_ == 0) return;
    kill(child_, SIGKILL);
    (void)Ended();
  }
  // Answers what the other process sends.
  void Answer(Way way) {
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(Arrives(link_.get(), DIRECTION_ACTIVATION, i)) << i;
      link_->Send(SentFromDevice(Exact(DIRECTION_GRADIENT, i)));
      ASSERT_EQ(link_->last_way(), way);
    }
  }

  // Waits until all frames of the first two messages of kBytes have come.
  void AwaitTwo() {
    const SteadyTime deadline = TestDeadline();
    while (frames_ < 2 * static_cast<int>(NumChunks(kBytes)) && SteadyTime::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  TestServer server_;
  std::vector<std::string> notes_;
  std::atomic<int> frames_{0};
  std::unique_ptr<Link> link_;
  pid_t child_ = 0;
};

TEST_F(TwoProcessesTest, ExactMessagesStayOnTheDeviceInBothDirections) {
  Start("slots");
  Answer(Way::kDeviceSlots);
  EXPECT_EQ(Ended(), 0);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(TwoProcessesTest, WithoutSharedMemoryOfDevicesTheHostsServes) {
  Start("copies", "THINWIRE_EMULATED_IPC=0");
  Answer(Way::kDeviceCopies);
  EXPECT_EQ(Ended(), 0);
}

TEST_F(TwoProcessesTest, WhatCameFromAPeerThatDiedIsReceived) {
  Start("hold");
  AwaitTwo();
  Kill();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Arrives(link_.get(), DIRECTION_ACTIVATION, i));
  EXPECT_TRUE(absl::IsUnavailable(link_->Receive(TestDeadline()).status()));
}

TEST_F(TwoProcessesTest, APeerThatDiesWithSlotsHeldEndsTheLink) {
  Start("hold");
  AwaitTwo();
  link_->Send(SentFromDevice(Exact(DIRECTION_GRADIENT, 0)));
  EXPECT_EQ(link_->last_way(), Way::kDeviceSlots);
  Kill();
  absl::StatusOr<Message> received = link_->Receive(TestDeadline());
  while (received.ok()) received = link_->Receive(TestDeadline());
  EXPECT_TRUE(absl::IsUnavailable(received.status())) << received.status();
  link_->Send(SentFromDevice(Exact(DIRECTION_GRADIENT, 1)));
  EXPECT_FALSE(link_->Flush(TestDeadline()).ok());
}

// Frames of a peer that says what it likes about a device's memory.
class DevicePayloadTest : public TwoProcessesTest {
 protected:
  DevicePayloadTest()
      : memory_(*SharedMemory::Create(64 << 10)), frame_(ToFrames(Small(), 77, 5).front()) {}

  static Message Small(Direction direction = DIRECTION_ACTIVATION) {
    Message message = TestMessage(direction, 50000, /*microbatch=*/kMessages);  // in no slot yet
    message.codec = CodecSpec();
    return message;
  }
  // Returns a ticket that no process has given.
  static std::string Ticket(const std::string& slots) {
    return absl::StrCat(slots, " ", std::string(128, 'a'));
  }
  // Returns the error that a frame of this slot, of this many bytes, ends the link with.
  absl::Status EndMet(const std::string& head, const std::string& prefix) {
    RawPeer peer(server_.address(), memory_->Ticket(), Ticket("16"));
    EXPECT_THAT(peer.Answer("thinwire-device-memory"), testing::StartsWith("16 "));
    peer.Write(head + prefix);
    const absl::Status status = link_->Receive(TestDeadline()).status();
    EXPECT_EQ(static_cast<int>(peer.End().error_code()), static_cast<int>(status.code()));
    link_ = *server_.service()->Listen(OnDevice(DownstreamOptions()));
    return status;
  }

  std::shared_ptr<SharedMemory> memory_;
  const OutgoingFrame frame_;
};

TEST_F(DevicePayloadTest, OfASlotThatThereIsNotEndsTheLink) {
  for (const auto& [head, says] : std::vector<std::pair<std::string, std::string>>{
           {std::string("\x08\x10\0\0\0\x50\xc3\0\0", 9), "50000 bytes in slot 16"},
           {std::string("\x08\xff\xff\xff\xff\x50\xc3\0\0", 9), "50000 bytes in slot 4294967295"},
           {std::string("\x08\0\0\0\0\1\0\1\0", 9), "65537 bytes in slot 0"},
           {std::string("\x08\0\0\0\0\xff\xff\xff\xff", 9), "4294967295 bytes in slot 0"}}) {
    const absl::Status status = EndMet(head, frame_.prefix);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
}

TEST_F(DevicePayloadTest, WhoseLengthIsNotTheFramesEndsTheLink) {
  for (const char* bytes : {"\x4f\xc3\0\0", "\x51\xc3\0\0", "\0\0\0\0"}) {
    const absl::Status status =
        EndMet(std::string("\x08\0\0\0\0", 5) + std::string(bytes, 4), frame_.prefix);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

TEST_F(DevicePayloadTest, ThatIsAnotherThanItsChecksumEndsTheLink) {
  for (const auto& [mark, came_by] :
       std::vector<std::pair<char, std::string>>{{'\x08', "came by a slot in device memory"},
                                                 {'\x07', "came by a slot in host memory"}}) {
    const absl::Status status =
        EndMet(mark + std::string("\0\0\0\0\x50\xc3\0\0", 8), frame_.prefix);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(came_by));
  }
}

TEST_F(DevicePayloadTest, WhereSlotsAreNotWantedNoneIsOffered) {
  LinkOptions options = OnDevice(DownstreamOptions());
  options.device_slots = false;
  link_.reset();  // leaves the cut
  link_ = *server_.service()->Listen(options);
  RawPeer peer(server_.address(), memory_->Ticket(), Ticket("16"));
  ASSERT_TRUE(peer.Shares());
  EXPECT_EQ(peer.Answer("thinwire-device-memory"), "");
  link_->Send(SentFromDevice(Small(DIRECTION_GRADIENT)));
  EXPECT_EQ(link_->last_way(), Way::kDeviceCopies);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(DevicePayloadTest, WithoutSuchMemoryEndsTheLink) {
  RawPeer peer(server_.address(), memory_->Ticket());
  EXPECT_EQ(peer.Answer("thinwire-device-memory"), "");
  peer.Write(std::string("\x08\0\0\0\0\x50\xc3\0\0", 9) + frame_.prefix);
  const absl::Status status = link_->Receive(TestDeadline()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("in device memory, want it here"));
}

TEST_F(DevicePayloadTest, ATicketThatOpensNothingIsNamedOnceAndTheHostsMemoryServes) {
  RawPeer peer(server_.address(), memory_->Ticket(), Ticket("16"));
  ASSERT_TRUE(peer.Shares());
  link_->Send(SentFromDevice(Small(DIRECTION_GRADIENT)));
  EXPECT_EQ(link_->last_way(), Way::kDeviceCopies);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("cudaIpcOpenMemHandle")));
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (argc == 3 && absl::StartsWith(argv[1], "--peer=")) {
    return thinwire::Peer(std::string(argv[1]).substr(std::strlen("--peer=")), argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
