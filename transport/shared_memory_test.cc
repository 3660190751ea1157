#include "transport/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest()
      : dialling_(*SharedMemory::Create(5000)),
        listening_(*SharedMemory::Open(dialling_->Ticket())) {}

  // Returns nothing if no slot is free now.
  std::optional<uint32_t> Put(SharedMemory* memory, const std::vector<uint8_t>& bytes) {
    const std::optional<uint32_t> slot =
        memory->Reserve(bytes.size(), SteadyTime(), [] { return false; });
    if (slot) crc_ = memory->Put(*slot, bytes);
    return slot;
  }
  void FillSlots() {
    while (Put(dialling_.get(), {1})) {
    }
  }
  static SteadyTime TestDeadline() { return SteadyTime::Now() + absl::Seconds(30); }

  std::shared_ptr<SharedMemory> dialling_, listening_;
  uint32_t crc_ = 0;  // checksum of the last Put
};

TEST_F(SharedMemoryTest, EachEndReadsWhatTheOtherHasPut) {
  const std::vector<uint8_t> down(5000, 3), up(100, 4);
  const std::optional<uint32_t> there = Put(dialling_.get(), down),
                                back = Put(listening_.get(), up);
  ASSERT_TRUE(there && back);
  EXPECT_EQ(crc_, Crc32c(up.data(), up.size()));
  EXPECT_THAT(listening_->Take(*there, down.size())->bytes, ElementsAreArray(down));
  EXPECT_THAT(dialling_->Take(*back, up.size())->bytes, ElementsAreArray(up));
}

TEST_F(SharedMemoryTest, ASlotIsFreeAgainWhenItHasBeenRead) {
  const std::vector<uint8_t> bytes(10, 1);
  std::vector<uint32_t> slots;
  while (const std::optional<uint32_t> slot = Put(dialling_.get(), bytes)) slots.push_back(*slot);
  EXPECT_GE(slots.size(), 2u);
  {
    const absl::StatusOr<Payload> taken = listening_->Take(slots[1], bytes.size());
    ASSERT_TRUE(taken.ok());
    EXPECT_FALSE(Put(dialling_.get(), bytes));
  }
  EXPECT_EQ(Put(dialling_.get(), bytes), slots[1]);
  EXPECT_TRUE(Put(listening_.get(), bytes));  // the other direction has its own
}

TEST_F(SharedMemoryTest, WhoeverWaitsForASlotGetsTheNextThatIsFree) {
  FillSlots();
  std::optional<uint32_t> reserved;
  std::thread waiter(
      [&] { reserved = dialling_->Reserve(/*bytes=*/10, TestDeadline(), [] { return false; }); });
  (void)listening_->Take(/*slot=*/7, /*bytes=*/10);
  waiter.join();
  EXPECT_EQ(reserved, 7u);
}

TEST_F(SharedMemoryTest, AWaitForASlotEndsAtItsDeadlineOrWhenItIsOver) {
  FillSlots();
  const SteadyTime soon = SteadyTime::Now() + absl::Milliseconds(30);
  EXPECT_FALSE(dialling_->Reserve(/*bytes=*/10, soon, [] { return false; }));
  EXPECT_GE(SteadyTime::Now(), soon);
  int asked = 0;
  EXPECT_FALSE(dialling_->Reserve(/*bytes=*/10, TestDeadline(), [&] { return ++asked == 3; }));
}

TEST_F(SharedMemoryTest, ASlotThatIsGivenUpIsFree) {
  FillSlots();
  dialling_->Release(3);
  EXPECT_EQ(Put(dialling_.get(), {1}), 3u);
}

// Records what is locked; refuses from the third call on.
class FewLocks final : public DirectCopies {
 public:
  Error LockPages(void* memory, size_t bytes) override {
    if (++calls_ > 2) return MakeError(absl::StatusCode::kInternal, "no more locks");
    locked_[memory] = bytes;
    return Error{};
  }
  void UnlockPages(void* memory) override { EXPECT_EQ(locked_.erase(memory), 1u); }
  Error NewQueue(CopyQueue** /*queue*/) override {
    return MakeError(absl::StatusCode::kUnimplemented, "nobody copies here");
  }
  PeerMemory* peer_memory() override { return nullptr; }

  int calls() const { return calls_; }
  const std::map<void*, size_t>& locked() const { return locked_; }

 private:
  int calls_ = 0;
  std::map<void*, size_t> locked_;
};

TEST_F(SharedMemoryTest, LocksASlotWhenItIsFirstUsedAndUnlocksItAtItsEnd) {
  FewLocks locks;
  std::vector<std::string> notes;
  listening_->LockFor(&locks, [&](const std::string& note) { notes.push_back(note); });
  for (int i = 0; i < 3; ++i) {
    const std::optional<uint32_t> slot = Put(dialling_.get(), {1});
    const size_t before = locks.locked().size();
    const absl::StatusOr<Payload> taken = listening_->Take(*slot, 1);
    EXPECT_EQ(locks.locked().size(), before) << "the host may be the one to read";
    EXPECT_TRUE(listening_->LockTaken(*slot)) << i;
  }
  const std::optional<uint32_t> own = Put(listening_.get(), {1});
  uint8_t* const memory = listening_->Locked(*own);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(*memory, 1);
  EXPECT_EQ(locks.locked().size(), 2u);
  EXPECT_EQ(locks.locked().at(memory), 8192u);
  listening_ = nullptr;
  EXPECT_TRUE(locks.locked().empty());
  EXPECT_THAT(notes, ElementsAre());
}

TEST_F(SharedMemoryTest, PagesThatCannotBeLockedAreTriedOnceAndToldOnce) {
  FewLocks locks;
  std::vector<std::string> notes;
  dialling_->LockFor(&locks, [&](const std::string& note) { notes.push_back(note); });
  FillSlots();
  EXPECT_NE(dialling_->Locked(0), nullptr);
  EXPECT_NE(dialling_->Locked(1), nullptr);
  for (uint32_t slot = 2; slot < 8; ++slot) EXPECT_EQ(dialling_->Locked(slot), nullptr);
  EXPECT_NE(dialling_->Locked(0), nullptr);
  EXPECT_EQ(locks.calls(), 3);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("copied by the CPU: no more locks")));
  dialling_ = nullptr;
  EXPECT_TRUE(locks.locked().empty());
}

TEST_F(SharedMemoryTest, WithoutADeviceNothingIsLocked) {
  EXPECT_FALSE(listening_->LockTaken(*Put(dialling_.get(), {1})));
}

TEST_F(SharedMemoryTest, WhatIsTakenOutlivesBothEnds) {
  const std::vector<uint8_t> bytes(4096, 7);
  const absl::StatusOr<Payload> taken =
      listening_->Take(*Put(dialling_.get(), bytes), bytes.size());
  dialling_ = listening_ = nullptr;
  EXPECT_THAT(taken->bytes, ElementsAreArray(bytes));
}

TEST_F(SharedMemoryTest, WhatIsTooLargeFindsNoSlot) {
  EXPECT_TRUE(Put(dialling_.get(), std::vector<uint8_t>(8192)));  // slots have whole pages
  EXPECT_FALSE(Put(dialling_.get(), std::vector<uint8_t>(8193)));
}

TEST_F(SharedMemoryTest, ASlotThatThereIsNotIsRefused) {
  for (const auto& [slot, bytes] : std::vector<std::pair<uint32_t, size_t>>{
           {32, 1}, {0xffffffff, 1}, {0, 8193}, {0, 0xffffffff}}) {
    const absl::Status status = listening_->Take(slot, bytes).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(bytes, " bytes in slot ", slot)));
  }
}

TEST(SharedMemoryTicketTest, AWrongOneOpensNothing) {
  const std::shared_ptr<SharedMemory> memory = *SharedMemory::Create(4096);
  const std::string ticket = memory->Ticket(), token(64, 'a');
  const std::string own = absl::StrCat(getpid(), " ");
  // Tickets of a file without seals, of a sealed one that is not a link's memory, and of a pipe.
  const int plain = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(plain, 1 << 20), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (const std::string& wrong :
       {std::string(), std::string("1 2"), absl::StrCat(ticket, " 1"), absl::StrCat("x", ticket),
        ticket.substr(0, ticket.size() - 1), ticket.substr(0, ticket.size() - 1) + "x",
        absl::StrCat(own, "999999 ", token), absl::StrCat("4000000000 3 ", token),
        absl::StrCat(own, plain, " ", token), absl::StrCat(own, ends[0], " ", token),
        absl::StrCat("-", own, "3 ", token)}) {
    EXPECT_FALSE(SharedMemory::Open(wrong).ok()) << wrong;
  }
  EXPECT_TRUE(SharedMemory::Open(ticket).ok());
  for (const int file : {plain, ends[0], ends[1]}) close(file);
}

}  // namespace
}  // namespace thinwire
