#include "stage_server/swap/swapper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "stage_server/swap/file_place.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kBytes = 100'000;

std::shared_ptr<Buffer> BufferOf(int value, size_t bytes = kBytes) {
  auto buffer = *Buffer::Allocate(CpuDevice(), bytes);
  std::memset(buffer->data(), value, bytes);
  return buffer;
}

bool HasOnly(const Buffer& buffer, int value, size_t bytes = kBytes) {
  const std::string wanted(bytes, static_cast<char>(value));
  return std::memcmp(buffer.data(), wanted.data(), bytes) == 0;
}

// A place in memory that counts what goes where, and fails at will.
class CountedPlace final : public SwapPlace {
 public:
  struct Log {
    std::mutex mutex;
    std::vector<int> written, read;  // first bytes
    size_t there = 0;
    absl::Status fails;
  };
  explicit CountedPlace(Log* log) : log_(log) {}

  bool Relieves(const Device& /*device*/) const override { return true; }
  absl::StatusOr<std::unique_ptr<SwappedBytes>> Write(const Buffer& memory, size_t bytes) override {
    const std::lock_guard<std::mutex> lock(log_->mutex);
    if (!log_->fails.ok()) return log_->fails;
    log_->written.push_back(*static_cast<const uint8_t*>(memory.data()));
    return std::make_unique<Copy>(log_, memory, bytes);
  }

 private:
  class Copy final : public SwappedBytes {
   public:
    Copy(Log* log, const Buffer& memory, size_t bytes)
        : log_(log), value_(*static_cast<const uint8_t*>(memory.data())), bytes_(bytes) {
      ++log_->there;
    }
    ~Copy() override {
      const std::lock_guard<std::mutex> lock(log_->mutex);
      --log_->there;
    }
    absl::StatusOr<std::shared_ptr<Buffer>> Read() override {
      const std::lock_guard<std::mutex> lock(log_->mutex);
      log_->read.push_back(value_);
      return BufferOf(value_, bytes_);
    }

   private:
    Log* const log_;
    const int value_;
    const size_t bytes_;
  };

  Log* const log_;
};

std::unique_ptr<Swapper> CountedSwapper(CountedPlace::Log* log) {
  return std::make_unique<Swapper>(std::make_unique<CountedPlace>(log),
                                   std::make_shared<Patience>());
}

SwapPass PassOf(int64_t first_sample) { return {0, first_sample, 0}; }

using Handles = std::vector<std::unique_ptr<Swapper::Handle>>;

std::unique_ptr<Swapper::Handle> Put(Swapper* swapper, int64_t pass, int value) {
  return *swapper->Put(PassOf(pass), {{BufferOf(value), kBytes}});
}

void ExpectTaken(Swapper* swapper, Swapper::Handle* handle, int value) {
  const auto taken = swapper->Take(handle);
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_EQ(taken->size(), 1u);
  EXPECT_TRUE(HasOnly(*taken->front().first, value));
}

TEST(SwapperTest, WhatIsPutComesBack) {
  CountedPlace::Log log;
  const auto swapper = CountedSwapper(&log);
  swapper->Expect({PassOf(0), PassOf(1)});
  Handles handles;
  for (int i = 0; i < 12; ++i) handles.push_back(Put(swapper.get(), i / 6, i));
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 6; i-- > 0;) {
      ExpectTaken(swapper.get(), handles[6 * pass + i].get(), 6 * pass + i);
    }
  }
  const SwapCounts counts = swapper->counts();
  EXPECT_GE(counts.bytes_out, (12 - Swapper::kMost) * kBytes);
  EXPECT_LE(counts.bytes_in, counts.bytes_out);
  EXPECT_LE(counts.most_bytes, 12 * kBytes);
  EXPECT_GE(counts.most_bytes, (12 - Swapper::kMost) * kBytes);
  handles.clear();
  EXPECT_EQ(log.there, 0u);
}

TEST(SwapperTest, WhatIsNeededLastLeavesFirst) {
  CountedPlace::Log log;
  const auto swapper = CountedSwapper(&log);
  swapper->Expect({PassOf(1), PassOf(0)});
  Handles handles;
  // The first put of a pass is needed last, and all of pass 0 after all of pass 1.
  for (int i = 0; i < 4; ++i) handles.push_back(Put(swapper.get(), 0, i));
  for (int i = 4; i < 8; ++i) handles.push_back(Put(swapper.get(), 1, i));
  // What is at hand in the end was never in anybody's way.
  {
    const std::lock_guard<std::mutex> lock(log.mutex);
    EXPECT_EQ(log.written.front(), 0);
    for (const int value : log.written) EXPECT_NE(value, 7);
  }
  for (const int i : {7, 6, 5, 4, 3, 2, 1, 0}) {
    ExpectTaken(swapper.get(), handles[i].get(), i);
  }
  // What has left comes back in the order in which it is needed.
  std::vector<int> read = log.read;
  EXPECT_TRUE(std::is_sorted(read.rbegin(), read.rend()));
  EXPECT_EQ(read.back(), 0);
}

TEST(SwapperTest, WhatIsTakenAtOnceNeverLeaves) {
  CountedPlace::Log log;
  const auto swapper = CountedSwapper(&log);
  for (int i = 0; i < 5; ++i) {
    const auto handle = Put(swapper.get(), 0, i);
    ExpectTaken(swapper.get(), handle.get(), i);
  }
  EXPECT_THAT(log.written, ElementsAre());
  EXPECT_EQ(swapper->counts().bytes_out, 0u);
}

TEST(SwapperTest, WhatIsDroppedIsForgotten) {
  CountedPlace::Log log;
  const auto swapper = CountedSwapper(&log);
  for (int round = 0; round < 20; ++round) {
    Handles handles;
    for (int i = 0; i < 6; ++i) handles.push_back(Put(swapper.get(), i, i));
  }
  const auto handle = Put(swapper.get(), 0, 77);
  ExpectTaken(swapper.get(), handle.get(), 77);
}

TEST(SwapperTest, AnErrorEndsAllThatComesAfter) {
  CountedPlace::Log log;
  log.fails = absl::ResourceExhaustedError("the place is full");
  const auto swapper = CountedSwapper(&log);
  Handles handles;
  absl::Status failed;
  for (int i = 0; i < 20 && failed.ok(); ++i) {
    auto handle = swapper->Put(PassOf(i), {{BufferOf(i), kBytes}});
    failed = handle.status();
    if (handle.ok()) handles.push_back(*std::move(handle));
  }
  EXPECT_EQ(failed.message(), "the place is full");
  EXPECT_EQ(swapper->Take(handles.front().get()).status(), failed);
}

std::unique_ptr<Swapper> SwapperOnDisk(const SwapFileOptions& options) {
  return std::make_unique<Swapper>(*NewFilePlace(CpuDevice(), options),
                                   std::make_shared<Patience>());
}

TEST(SwapperTest, FilesKeepAllBits) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir();
  const auto swapper = SwapperOnDisk(options);
  swapper->Expect({PassOf(0)});
  constexpr size_t kSizes[] = {1, 4096, 4097, size_t{4} << 20, (size_t{4} << 20) + 5};
  Handles handles;
  for (int i = 0; i < 4; ++i) {
    Swapper::Memory memory;
    for (const size_t bytes : kSizes) memory.emplace_back(BufferOf(i, bytes), bytes);
    handles.push_back(*swapper->Put(PassOf(0), std::move(memory)));
  }
  for (int i = 4; i-- > 0;) {
    const Swapper::Memory back = *swapper->Take(handles[i].get());
    ASSERT_EQ(back.size(), std::size(kSizes));
    for (size_t k = 0; k < back.size(); ++k) {
      EXPECT_TRUE(HasOnly(*back[k].first, i, kSizes[k])) << i << ", " << kSizes[k] << " bytes";
    }
  }
  EXPECT_GT(swapper->counts().bytes_in, 0u);
}

TEST(SwapperTest, ARangeIsUsedAgain) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir();
  options.most_bytes = 6 * (kBytes + SwapFile::kUnit);
  const auto swapper = SwapperOnDisk(options);
  for (int round = 0; round < 5; ++round) {
    Handles handles;
    for (int i = 0; i < 6; ++i) handles.push_back(Put(swapper.get(), 0, i));
    for (int i = 6; i-- > 0;) ExpectTaken(swapper.get(), handles[i].get(), i);
  }
}

// Returns the descriptor of the only swap file of this process.
int DescriptorOfSwapFile() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.find(".thinwire-swap-") != target.npos) return std::stoi(entry.path().filename());
  }
  return -1;
}

// Puts much away, does something to the file, and returns the first error of Take.
template <typename Harm>
absl::Status AfterHarm(const Harm& harm) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir();
  const auto swapper = SwapperOnDisk(options);
  swapper->Expect({PassOf(0)});
  Handles handles;
  for (int i = 0; i < 12; ++i) handles.push_back(Put(swapper.get(), 0, i));
  harm(DescriptorOfSwapFile());
  for (int i = 12; i-- > 0;) {
    const absl::Status taken = swapper->Take(handles[i].get()).status();
    if (!taken.ok()) return taken;
  }
  return absl::OkStatus();
}

TEST(SwapperTest, AFileThatVanishesIsNamed) {
  const absl::Status status = AfterHarm([](int file) { ASSERT_EQ(ftruncate(file, 0), 0); });
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("swap file in " + ::testing::TempDir()));
}

TEST(SwapperTest, ARottenFileIsNamed) {
  const absl::Status status = AfterHarm([](int file) {
    alignas(4096) static char rot[4096];
    std::memset(rot, 0x5a, sizeof(rot));
    ASSERT_EQ(pwrite(file, rot, sizeof(rot), 4096), static_cast<ssize_t>(sizeof(rot)));
  });
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("CRC-32C"));
}

}  // namespace
}  // namespace thinwire
