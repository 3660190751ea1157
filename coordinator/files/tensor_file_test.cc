#include "coordinator/files/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(TensorFileTest, AFolderIsAnErrorThatNamesIt) {
  const std::string dir = ::testing::TempDir();
  EXPECT_THAT(std::string(ReadTensorFile(dir).status().message()),
              HasSubstr(dir + ": cannot read: Is a directory"));
}

}  // namespace
}  // namespace thinwire
