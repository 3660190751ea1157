#include "base/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(TensorFileTest, WhatIsWrittenIsReadAndNothingElseIsLeft) {
  const std::string dir = ::testing::TempDir() + "/tensor_file";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  const Safetensors written{{}, {{"x", "F32", {1}, "abcd"}, {"y", "BF16", {2}, "efgh"}}};
  const absl::Status status = WriteTensorFile(dir + "/one.safetensors", written);
  ASSERT_TRUE(status.ok()) << status;
  const auto read = ReadTensorFile(dir + "/one.safetensors");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(read->contents.tensors, SizeIs(2));
  EXPECT_EQ(read->contents.tensors[1].name, "y");
  EXPECT_EQ(read->contents.tensors[1].data, "efgh");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir), {}), 1);
}

TEST(TensorFileTest, AFileThatIsMalformedOrMissingIsNamed) {
  const std::string path = ::testing::TempDir() + "/broken.safetensors";
  std::ofstream(path) << "abc";
  EXPECT_THAT(std::string(ReadTensorFile(path).status().message()),
              HasSubstr(path + ": safetensors: 3 bytes, want at least 8"));
  const absl::Status missing = ReadTensorFile(path + "x").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(path + "x"));
}

// Writes a file with that content and returns its path.
std::string Written(const std::string& content) {
  const std::string path = ::testing::TempDir() + "/opened.safetensors";
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string Two() {
  std::string bytes;
  const Safetensors file{{}, {{"x", "F32", {1}, "abcd"}, {"y", "BF16", {2}, "efgh"}}};
  EXPECT_TRUE(WriteSafetensors(file, 1000, [&](std::string_view piece) {
                bytes += piece;
                return absl::OkStatus();
              }).ok());
  return bytes;
}

TEST(OpenTensorFileTest, ATensorIsReadInPiecesAlsoWhenTheFileIsReplaced) {
  const std::string path = Written(Two());
  const auto file = OpenTensorFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->data_bytes(), 8u);
  ASSERT_THAT(file->header().tensors, SizeIs(2));
  std::filesystem::remove(path);
  std::vector<std::string> pieces;
  const absl::Status status = file->Read(file->header().tensors[1], 3, [&](std::string_view piece) {
    pieces.emplace_back(piece);
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(pieces, ::testing::ElementsAre("efg", "h"));
}

TEST(OpenTensorFileTest, AFileCutShortIsRefusedAtEachByteAndNamed) {
  const std::string whole = Two();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string path = Written(whole.substr(0, size));
    const absl::Status status = OpenTensorFile::Open(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": safetensors: "));
  }
}

TEST(OpenTensorFileTest, AFileThatShrinksLaterIsNamed) {
  const std::string path = Written(Two());
  const auto file = OpenTensorFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  const auto ignore = [](std::string_view) { return absl::OkStatus(); };
  EXPECT_THAT(std::string(file->Read(file->header().tensors[1], 100, ignore).message()),
              HasSubstr(path + ": ends at byte "));
}

TEST(OpenTensorFileTest, AHeaderThatLiesIsRefusedBeforeItIsRead) {
  const std::string huge("\0\0\0\0\0\0\0\1", 8);
  EXPECT_THAT(std::string(OpenTensorFile::Open(Written(huge + "{}")).status().message()),
              HasSubstr("a header of 72057594037927936 bytes, 2 there"));
}

TEST(OpenTensorFileTest, AHeaderMayHoldManyTensors) {
  Safetensors many;
  for (int i = 0; i < 60'000; ++i) {
    many.tensors.push_back({"t" + std::to_string(i), "U8", {0}, ""});
  }
  const std::string path = ::testing::TempDir() + "/many.safetensors";
  ASSERT_TRUE(WriteTensorFile(path, many).ok());
  const auto file = OpenTensorFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->header().tensors, SizeIs(60'000));
}

TEST(OpenTensorFileTest, WhatMayNotBeReadOrIsAFolderIsNamed) {
  const std::string path = Written(Two());
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);  // nobody: root may read everything
  }
  const absl::Status status = OpenTensorFile::Open(path).status();
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("opened.safetensors: cannot open: Permission denied"));
  EXPECT_THAT(std::string(OpenTensorFile::Open(::testing::TempDir()).status().message()),
              HasSubstr(": cannot read: Is a directory"));
  std::filesystem::remove(path);
}

TEST(TensorFileTest, AFolderIsAnErrorThatNamesIt) {
  const std::string dir = ::testing::TempDir();
  EXPECT_THAT(std::string(ReadTensorFile(dir).status().message()),
              HasSubstr(dir + ": cannot read: Is a directory"));
}

}  // namespace
}  // namespace thinwire
