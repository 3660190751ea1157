#include "stage_server/grpc/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest()
      : dialling_(*SharedMemory::Create(5000)),
        listening_(*SharedMemory::Open(dialling_->Ticket())) {}

  std::shared_ptr<SharedMemory> dialling_, listening_;
  uint32_t crc_ = 0;  // of what was put last
};

TEST_F(SharedMemoryTest, EachEndReadsWhatTheOtherHasPut) {
  const std::vector<uint8_t> down(5000, 3), up(100, 4);
  const std::optional<uint32_t> there = dialling_->Put(down, &crc_),
                                back = listening_->Put(up, &crc_);
  ASSERT_TRUE(there && back);
  EXPECT_EQ(crc_, Crc32c(up.data(), up.size()));
  EXPECT_THAT(listening_->Take(*there, down.size())->bytes, ElementsAreArray(down));
  EXPECT_THAT(dialling_->Take(*back, up.size())->bytes, ElementsAreArray(up));
}

TEST_F(SharedMemoryTest, ASlotIsFreeAgainWhenItHasBeenRead) {
  const std::vector<uint8_t> bytes(10, 1);
  std::vector<uint32_t> slots;
  while (const std::optional<uint32_t> slot = dialling_->Put(bytes, &crc_)) slots.push_back(*slot);
  EXPECT_GE(slots.size(), 2u);
  {
    const absl::StatusOr<Payload> payload = listening_->Take(slots[1], bytes.size());
    ASSERT_TRUE(payload.ok());
    EXPECT_FALSE(dialling_->Put(bytes, &crc_));
  }
  EXPECT_EQ(dialling_->Put(bytes, &crc_), slots[1]);
  EXPECT_TRUE(listening_->Put(bytes, &crc_));  // the other direction has its own
}

TEST_F(SharedMemoryTest, WhatIsTakenOutlivesBothEnds) {
  const std::vector<uint8_t> bytes(4096, 7);
  const absl::StatusOr<Payload> payload =
      listening_->Take(*dialling_->Put(bytes, &crc_), bytes.size());
  dialling_ = listening_ = nullptr;
  EXPECT_THAT(payload->bytes, ElementsAreArray(bytes));
}

TEST_F(SharedMemoryTest, WhatIsTooLargeFindsNoSlot) {
  EXPECT_TRUE(dialling_->Put(std::vector<uint8_t>(8192), &crc_));  // whole pages
  EXPECT_FALSE(dialling_->Put(std::vector<uint8_t>(8193), &crc_));
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
  // Of a file without seals, of one with them that is not a link's memory, and of a pipe.
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
