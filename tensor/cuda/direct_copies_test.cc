// Runs on the emulator, and with --config=cuda on a GPU.

#include "tensor/cuda/direct_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/random.h"
#include "tensor/cuda/crc32c.h"
#include "tensor/cuda/peer_memory.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPage = 4096;

#define ASSERT_OK(expression)                   \
  do {                                          \
    const Error error_ = (expression);          \
    ASSERT_TRUE(error_.ok()) << error_.message; \
  } while (false)

std::vector<uint8_t> RandomBytes(size_t size, uint64_t seed) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = RandomKey(seed, i);
    std::memcpy(&bytes[i], &word, std::min<size_t>(8, size - i));
  }
  return bytes;
}

// Pages that are not locked yet, as a link's slots are.
class Pages {
 public:
  explicit Pages(size_t bytes)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~Pages() { munmap(memory_, bytes_); }
  uint8_t* data() const { return static_cast<uint8_t*>(memory_); }
  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_;
  void* const memory_;
};

// A clock that goes as tests say.
CudaPeerMemory::Clock::time_point told_time;
CudaPeerMemory::Clock::time_point ToldTime() { return told_time; }

class DirectCopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    static CudaDevice* opened = nullptr;
    if (opened == nullptr) {
      const Error error = NewCudaDevice(0, &opened);
      if (static_cast<absl::StatusCode>(error.code) == absl::StatusCode::kUnavailable) {
        GTEST_SKIP() << error.message;
      }
      ASSERT_OK(error);
    }
    device_ = opened;
    host_bytes_before_ = device_->host()->bytes_in_use();
    copies_ = NewCudaDirectCopies(device_);
    CopyQueue* queue = nullptr;
    ASSERT_OK(copies_->NewQueue(&queue));
    queue_.reset(queue);
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    queue_ = nullptr;
    for (void* memory : allocated_) device_->Free(memory);
    ASSERT_OK(device_->Finish());
    EXPECT_EQ(device_->host()->bytes_in_use(), host_bytes_before_);
  }

  uint8_t* Allocate(size_t bytes) {
    void* memory = nullptr;
    EXPECT_TRUE(device_->Allocate(bytes, &memory).ok());
    allocated_.push_back(memory);
    return static_cast<uint8_t*>(memory);
  }
  uint8_t* Sent(const std::vector<uint8_t>& bytes) {
    uint8_t* const memory = Allocate(bytes.size());
    EXPECT_TRUE(device_->CopyFromHost(memory, bytes.data(), bytes.size()).ok());
    return memory;
  }
  std::vector<uint8_t> Read(const uint8_t* memory, size_t bytes) {
    std::vector<uint8_t> read(bytes);
    EXPECT_TRUE(device_->CopyToHost(read.data(), memory, bytes).ok());
    return read;
  }
  uint32_t Awaited() {
    uint32_t crc = 0;
    const Error error = queue_->Await(&crc);
    EXPECT_TRUE(error.ok()) << error.message;
    return crc;
  }

  CudaDevice* device_ = nullptr;
  size_t host_bytes_before_ = 0;
  std::unique_ptr<DirectCopies> copies_;
  std::unique_ptr<CopyQueue> queue_;
  std::vector<void*> allocated_;
};

// Takes lengths around a unit, a block's round and a stretch, and the maximum.
TEST_F(DirectCopiesTest, SumsWhatTheHostSums) {
  const std::vector<uint8_t> bytes = RandomBytes(CopyQueue::kMostBytes, 1);
  const uint8_t* const memory = Sent(bytes);
  std::vector<uint8_t> to(bytes.size());
  for (const size_t of : {size_t{0}, size_t{16}, size_t{4096}, Crc32cParts::kStretchBytes,
                          3 * Crc32cParts::kStretchBytes, CopyQueue::kMostBytes - 17}) {
    for (size_t more = of == 0 ? 1 : 0; more <= 17; ++more) {
      const size_t size = of + more;
      ASSERT_OK(queue_->SubmitToHost(to.data(), memory, size));
      ASSERT_EQ(Awaited(), Crc32c(bytes.data(), size)) << size;
    }
  }
}

TEST_F(DirectCopiesTest, SumsFromWhereItIsTold) {
  const std::vector<uint8_t> bytes = RandomBytes(1000, 2);
  const uint8_t* const memory = Sent(bytes);
  std::vector<uint8_t> to(bytes.size());
  for (size_t begin = 0; begin < 900; begin += 16) {
    ASSERT_OK(queue_->SubmitToHost(to.data(), memory + begin, 100));
    ASSERT_EQ(Awaited(), Crc32c(bytes.data() + begin, 100)) << begin;
  }
}

TEST_F(DirectCopiesTest, CopiesBetweenLockedPagesAndTheDevice) {
  const Pages pages(4 * kPage);
  ASSERT_OK(copies_->LockPages(pages.data(), pages.bytes()));
  const std::vector<uint8_t> bytes = RandomBytes(pages.bytes() - 5, 3);
  ASSERT_OK(queue_->SubmitToHost(pages.data(), Sent(bytes), bytes.size()));
  EXPECT_EQ(Awaited(), Crc32c(bytes.data(), bytes.size()));
  EXPECT_EQ(std::memcmp(pages.data(), bytes.data(), bytes.size()), 0);
  uint8_t* const back = Allocate(bytes.size());
  ASSERT_OK(queue_->SubmitFromHost(back, pages.data(), bytes.size()));
  EXPECT_EQ(Awaited(), Crc32c(bytes.data(), bytes.size()));
  EXPECT_EQ(Read(back, bytes.size()), bytes);
  copies_->UnlockPages(pages.data());
}

TEST_F(DirectCopiesTest, SeveralCopiesAreAwaitedInTheirOrder) {
  const Pages pages(8 * kPage);
  ASSERT_OK(copies_->LockPages(pages.data(), pages.bytes()));
  std::vector<std::vector<uint8_t>> sent;
  for (int i = 0; i < 8; ++i) sent.push_back(RandomBytes(kPage - i, 10 + i));
  for (int i = 0; i < 8; ++i) {
    ASSERT_OK(queue_->SubmitToHost(pages.data() + i * kPage, Sent(sent[i]), sent[i].size()));
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Awaited(), Crc32c(sent[i].data(), sent[i].size()));
    EXPECT_EQ(std::memcmp(pages.data() + i * kPage, sent[i].data(), sent[i].size()), 0);
  }
  copies_->UnlockPages(pages.data());
}

// Bytes that the peer writes meanwhile must not be part of the sum.
TEST_F(DirectCopiesTest, TheSumIsThatOfTheCopyOnTheDevice) {
  const Pages pages(kPage);
  const std::vector<uint8_t> bytes = RandomBytes(kPage, 4);
  std::memcpy(pages.data(), bytes.data(), kPage);
  uint8_t* const to = Allocate(kPage);
  ASSERT_OK(queue_->SubmitFromHost(to, pages.data(), kPage));
  ASSERT_OK(device_->Finish());
  std::memset(pages.data(), 0, kPage);
  EXPECT_EQ(Awaited(), Crc32c(bytes.data(), kPage));
}

TEST_F(DirectCopiesTest, AQueueThatEndsHasCopied) {
  const Pages pages(kPage);
  const std::vector<uint8_t> bytes = RandomBytes(kPage, 5);
  ASSERT_OK(queue_->SubmitToHost(pages.data(), Sent(bytes), kPage));
  queue_ = nullptr;
  EXPECT_EQ(std::memcmp(pages.data(), bytes.data(), kPage), 0);
}

TEST_F(DirectCopiesTest, CopiesBetweenMemoryForPeersAndTheDevice) {
  void* shared = nullptr;
  PeerMemoryHandle handle;
  ASSERT_OK(copies_->peer_memory()->Allocate(kPage, &shared, &handle));
  auto* const slot = static_cast<uint8_t*>(shared);
  const std::vector<uint8_t> bytes = RandomBytes(kPage - 5, 6);
  ASSERT_OK(queue_->SubmitToShared(slot, Sent(bytes), bytes.size()));
  EXPECT_EQ(Awaited(), Crc32c(bytes.data(), bytes.size()));
  uint8_t* const back = Allocate(bytes.size());
  ASSERT_OK(queue_->SubmitFromShared(back, slot, bytes.size()));
  EXPECT_EQ(Awaited(), Crc32c(bytes.data(), bytes.size()));
  EXPECT_EQ(Read(back, bytes.size()), bytes);
  copies_->peer_memory()->Free(shared);
}

// CUDA leaves undefined what becomes of memory that is freed while a peer has it open.
TEST_F(DirectCopiesTest, MemoryForPeersIsKeptForTheNext) {
  CudaPeerMemory memory(device_, &ToldTime);
  void *small = nullptr, *large = nullptr, *next = nullptr;
  PeerMemoryHandle of_small, of_large, of_next;
  ASSERT_OK(memory.Allocate(100, &small, &of_small));
  ASSERT_OK(memory.Allocate(9 << 20, &large, &of_large));
  memory.Free(large);
  memory.Free(small);
  told_time += CudaPeerMemory::kRest;
  ASSERT_OK(memory.Allocate(200, &next, &of_next));
  EXPECT_EQ(next, small);
  EXPECT_EQ(std::memcmp(of_next.bytes, of_small.bytes, PeerMemoryHandle::kBytes), 0);
}

TEST_F(DirectCopiesTest, MemoryForPeersRestsBeforeTheNext) {
  CudaPeerMemory memory(device_, &ToldTime);
  void *first = nullptr, *second = nullptr, *third = nullptr;
  PeerMemoryHandle handle;
  ASSERT_OK(memory.Allocate(100, &first, &handle));
  memory.Free(first);
  told_time += CudaPeerMemory::kRest - std::chrono::milliseconds(1);
  ASSERT_OK(memory.Allocate(100, &second, &handle));
  EXPECT_NE(second, first) << "its peer may be writing";
  told_time += std::chrono::milliseconds(1);
  ASSERT_OK(memory.Allocate(100, &third, &handle));
  EXPECT_EQ(third, first);
}

TEST_F(DirectCopiesTest, MemoryForPeersCountsAsInUse) {
  CudaPeerMemory memory(device_, &ToldTime);
  const size_t before = device_->bytes_in_use();
  void* allocated = nullptr;
  PeerMemoryHandle handle;
  ASSERT_OK(memory.Allocate(5 << 20, &allocated, &handle));
  EXPECT_EQ(device_->bytes_in_use(), before + (6 << 20));  // whole pages
  memory.Free(allocated);
  EXPECT_EQ(device_->bytes_in_use(), before + (6 << 20)) << "it is kept";
  told_time += CudaPeerMemory::kRest;
  ASSERT_OK(memory.Allocate(5 << 20, &allocated, &handle));
  EXPECT_EQ(device_->bytes_in_use(), before + (6 << 20));
}

TEST_F(DirectCopiesTest, WhatIsNoHandleOpensNothing) {
  void* opened = nullptr;
  const Error error = copies_->peer_memory()->Open(PeerMemoryHandle(), &opened);
  EXPECT_THAT(std::string(error.message), HasSubstr("cudaIpcOpenMemHandle"));
}

TEST_F(DirectCopiesTest, PagesThatAreLockedAreRefused) {
  const Pages pages(2 * kPage);
  ASSERT_OK(copies_->LockPages(pages.data(), 2 * kPage));
  const Error error = copies_->LockPages(pages.data() + kPage, kPage);
  EXPECT_THAT(std::string(error.message), HasSubstr("cudaHostRegister"));
  copies_->UnlockPages(pages.data());
  ASSERT_OK(copies_->LockPages(pages.data() + kPage, kPage));
  copies_->UnlockPages(pages.data() + kPage);
}

}  // namespace
}  // namespace thinwire
