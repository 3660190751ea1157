#include "stage_server/swap/swap_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kUnit = SwapFile::kUnit;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Free>;

Memory Units(size_t count, char value) {
  auto* const data = static_cast<char*>(std::aligned_alloc(kUnit, count * kUnit));
  std::memset(data, value, count * kUnit);
  return Memory(data);
}

TEST(SwapFileTest, RangesComeBackAndNoNameStays) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir() + "/swap_file_ranges";
  std::filesystem::create_directories(options.folder);
  const auto file = *SwapFile::Open(options);
  EXPECT_TRUE(std::filesystem::is_empty(options.folder));
  const Memory a = Units(2, 'a'), b = Units(1, 'b'), back = Units(2, 0);
  ASSERT_TRUE(file->Write(kUnit, a.get(), 2 * kUnit).ok());
  ASSERT_TRUE(file->Write(3 * kUnit, b.get(), kUnit).ok());
  ASSERT_TRUE(file->Read(2 * kUnit, back.get(), 2 * kUnit).ok());
  EXPECT_EQ(std::memcmp(back.get(), a.get(), kUnit), 0);
  EXPECT_EQ(std::memcmp(back.get() + kUnit, b.get(), kUnit), 0);
}

TEST(SwapFileTest, TheLimitIsNamed) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir();
  options.most_bytes = 2 * kUnit;
  const auto file = *SwapFile::Open(options);
  const Memory memory = Units(2, 'a');
  EXPECT_TRUE(file->Write(0, memory.get(), 2 * kUnit).ok());
  const absl::Status full = file->Write(kUnit, memory.get(), 2 * kUnit);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("swap file in " + options.folder), HasSubstr("12288 bytes wanted"),
                    HasSubstr("at most 8192 are allowed (--swap_bytes)")));
}

TEST(SwapFileTest, AnEndIsNotTakenForZeros) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir();
  const auto file = *SwapFile::Open(options);
  const Memory memory = Units(1, 'a');
  ASSERT_TRUE(file->Write(0, memory.get(), kUnit).ok());
  const absl::Status ended = file->Read(kUnit, memory.get(), kUnit);
  EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("ends at byte 4096, want 4096 more"));
}

TEST(SwapFileTest, FoldersThatWillNotDoAreNamed) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir() + "/swap_file_absent";
  EXPECT_THAT(std::string(SwapFile::Open(options).status().message()),
              HasSubstr("swap file in " + options.folder + ": cannot open"));
  options.folder = ::testing::TempDir() + "/swap_file_locked";
  std::filesystem::create_directories(options.folder);
  ASSERT_EQ(chmod(options.folder.c_str(), 0500), 0);
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const absl::Status locked = SwapFile::Open(options).status();
  EXPECT_TRUE(absl::IsPermissionDenied(locked)) << locked;
}

}  // namespace
}  // namespace thinwire
