#include "data/temporary_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace thinwire {
namespace {

TEST(TemporaryFileTest, KeepsBytesWithoutAName) {
  const std::string folder = testing::TempDir() + "/temporary_file";
  std::filesystem::create_directories(folder);
  absl::StatusOr<TemporaryFile> file = TemporaryFile::In(folder);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const std::string large(3'000'000, 'a');
  for (const std::string& part : {std::string("0123"), large, std::string("4567")}) {
    ASSERT_TRUE(file->Append(part.data(), part.size()).ok());
  }
  EXPECT_EQ(file->size(), 3'000'008);
  ASSERT_TRUE(file->Flush().ok());
  EXPECT_EQ(file->size(), 3'000'008);
  std::string read(6, '\0');
  ASSERT_TRUE(file->Read(3'000'002, read.data(), read.size()).ok());
  EXPECT_EQ(read, "aa4567");
  EXPECT_FALSE(file->Read(3'000'003, read.data(), read.size()).ok());
  std::filesystem::remove_all(folder);
}

TEST(TemporaryFileTest, AFolderThatIsNoneIsNamed) {
  EXPECT_THAT(std::string(TemporaryFile::In("/none/here").status().message()),
              testing::StartsWith("/none/here/.thinwire"));
}

TEST(FolderOfTest, APathWithoutAFolderIsInTheCurrentOne) {
  EXPECT_EQ(FolderOf("a.jsonl"), ".");
  EXPECT_EQ(FolderOf("b/a.jsonl"), "b");
}

}  // namespace
}  // namespace thinwire
