#include "base/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/sha256.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ModelFolderTest : public ::testing::Test {
 protected:
  ModelFolderTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void Write(const std::string& name, const std::vector<StoredTensor>& tensors) {
    const absl::Status status = WriteTensorFile(dir_ + "/" + name, {{}, tensors});
    ASSERT_TRUE(status.ok()) << status;
  }
  void WriteIndex(const std::string& text) { std::ofstream(dir_ + "/" + kModelIndex) << text; }
  std::string ErrorOfOpening() { return std::string(ModelFolder::Open(dir_).status().message()); }
  static std::string DataOf(const ModelFolder& folder, const std::string& name) {
    std::string data;
    const absl::Status status =
        folder.Read(folder.tensors().at(name), 1, [&](std::string_view piece) {
          data += piece;
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    return data;
  }

  const std::string dir_ = ::testing::TempDir() + "/model_folder";
};

TEST_F(ModelFolderTest, OneFileIsAModel) {
  Write("model.safetensors", {{"x", "F32", {1}, "abcd"}, {"y", "BF16", {1}, "ef"}});
  const auto folder = ModelFolder::Open(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT(folder->tensors(), SizeIs(2));
  EXPECT_EQ(folder->tensors().at("y").place.dtype, "BF16");
  EXPECT_EQ(DataOf(*folder, "x"), "abcd");
  EXPECT_EQ(DataOf(*folder, "y"), "ef");
}

TEST_F(ModelFolderTest, ShardsAreReadByTheirIndexAndStayWhatTheyWere) {
  Write("a.safetensors", {{"x", "F32", {1}, "abcd"}});
  Write("b.safetensors", {{"y", "F32", {1}, "efgh"}});
  Write("c.safetensors", {{"z", "F32", {1}, "mnop"}});
  WriteIndex(R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  const auto folder = ModelFolder::Open(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT(folder->tensors(), SizeIs(2));
  Write("b.safetensors", {{"y", "F32", {1}, "ijkl"}});
  EXPECT_EQ(DataOf(*folder, "x"), "abcd");
  EXPECT_EQ(DataOf(*folder, "y"), "efgh");
}

TEST_F(ModelFolderTest, WhatAShardHasBesideItsIndexIsReadToo) {
  Write("a.safetensors", {{"x", "F32", {1}, "abcd"}, {"unnamed", "U8", {1}, "e"}});
  Write("b.safetensors", {{"x", "F32", {1}, "abcd"}, {"y", "F32", {1}, "efgh"}});
  WriteIndex(R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  const auto folder = ModelFolder::Open(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT(folder->tensors(), SizeIs(3));
  EXPECT_EQ(DataOf(*folder, "unnamed"), "e");
  Write("b.safetensors", {{"x", "F32", {1}, "abce"}, {"y", "F32", {1}, "efgh"}});
  EXPECT_EQ(ErrorOfOpening(), dir_ + "/b.safetensors: x has other values than in " + dir_ +
                                  "/a.safetensors, want it once, or the same");
  Write("b.safetensors", {{"x", "BF16", {2}, "abcd"}, {"y", "F32", {1}, "efgh"}});
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("x has other values than in "));
}

TEST_F(ModelFolderTest, OneFileGoesBeforeAnIndexBesideIt) {
  Write("model.safetensors", {{"x", "F32", {1}, "abcd"}});
  Write("a.safetensors", {{"x", "F32", {1}, "efgh"}});
  WriteIndex(R"({"weight_map": {"x": "a.safetensors"}})");
  EXPECT_EQ(DataOf(*ModelFolder::Open(dir_), "x"), "abcd");
}

TEST_F(ModelFolderTest, WhatOnlyStandsInTheirPlaceIsNamed) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\nsize 548105171\n";
  WriteIndex(pointer);
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("index.json: is a pointer of Git LFS to 548105171"));
  std::ofstream(dir_ + "/" + kModelFile) << pointer;
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("/model.safetensors: is a pointer of Git LFS to 5481"));
  std::ofstream(dir_ + "/" + kModelFile) << "<!DOCTYPE html>\n<html>";
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("/model.safetensors: is an HTML page"));
}

TEST_F(ModelFolderTest, AnIndexIsWrittenOfTheFilesHeaders) {
  Write("a.safetensors", {{"x", "F32", {1}, "abcd"}});
  Write("b.safetensors", {{"y", "F32", {1}, "efgh"}});
  Write("other.safetensors", {{"z", "U8", {1}, "i"}});
  ASSERT_TRUE(WriteModelIndex(dir_, {"a.safetensors", "b.safetensors"}).ok());
  const auto folder = ModelFolder::Open(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT(folder->tensors(), SizeIs(2));
  EXPECT_EQ(DataOf(*folder, "y"), "efgh");
  EXPECT_THAT(std::string(WriteModelIndex(dir_, {"c.safetensors"}).message()),
              HasSubstr("/c.safetensors: cannot open: No such file"));
}

TEST_F(ModelFolderTest, AFolderWithoutAModelSaysWhatItLacks) {
  EXPECT_EQ(ErrorOfOpening(),
            dir_ + ": has neither model.safetensors nor model.safetensors.index.json");
  fs::remove_all(dir_);
  EXPECT_EQ(ErrorOfOpening(), dir_ + ": cannot open: No such file or directory");
}

TEST_F(ModelFolderTest, AShardThatIsNotThereIsNamed) {
  WriteIndex(R"({"weight_map": {"x": "a.safetensors"}})");
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("/a.safetensors: cannot open: No such file"));
}

TEST_F(ModelFolderTest, ATensorThatItsShardDoesNotHaveIsNamed) {
  Write("a.safetensors", {{"fc.bias", "U8", {1}, "a"}});
  WriteIndex(R"({"weight_map": {"fc.bias": "a.safetensors", "fc.weight": "a.safetensors"}})");
  EXPECT_THAT(ErrorOfOpening(),
              HasSubstr("a.safetensors: fc.weight, which the index names, is not there"));
}

TEST_F(ModelFolderTest, AnIndexThatPointsElsewhereOrIsNoneIsRefused) {
  WriteIndex(R"({"weight_map": {"fc.bias": "../a.safetensors"}})");
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("fc.bias stands in no shard"));
  WriteIndex(R"({"weight_map": {"fc.bias": 3}})");
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("fc.bias stands in no shard"));
  WriteIndex(R"({"weight_map": {"fc.bias": ".."}})");
  EXPECT_THAT(ErrorOfOpening(), HasSubstr("/..: cannot read: Is a directory"));
  for (const char* text : {"", "[]", "{}", R"({"weight_map": 1})"}) {
    WriteIndex(text);
    EXPECT_THAT(ErrorOfOpening(), HasSubstr("index.json: is no index with a weight_map")) << text;
  }
}

TEST_F(ModelFolderTest, AFileCutShortIsNamed) {
  Write("model.safetensors", {{"x", "F32", {1}, "abcd"}});
  fs::resize_file(dir_ + "/model.safetensors", fs::file_size(dir_ + "/model.safetensors") - 1);
  EXPECT_THAT(ErrorOfOpening(),
              HasSubstr("model.safetensors: safetensors: tensor x: bytes 0 to 4"));
}

TEST_F(ModelFolderTest, AnIndexThatMayNotBeReadIsNamed) {
  WriteIndex("{}");
  fs::permissions(dir_ + "/" + kModelIndex, fs::perms::none);
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);  // nobody: root may read everything
  }
  const std::string error = ErrorOfOpening();
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_THAT(error, HasSubstr("index.json: cannot open: Permission denied"));
}

TEST_F(ModelFolderTest, ATensorThatIsAnotherThanItMustBeIsRefusedByBothDigests) {
  Write("model.safetensors", {{"x", "F32", {1}, "abcd"}});
  auto folder = ModelFolder::Open(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  ModelFolder::Entry entry = folder->tensors().at("x");
  entry.sha256 = Sha256("abcd");
  const auto ignore = [](std::string_view) { return absl::OkStatus(); };
  EXPECT_TRUE(folder->Read(entry, 3, ignore).ok());
  entry.sha256 = Sha256("abce");
  const absl::Status status = folder->Read(entry, 3, ignore);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(dir_ + "/model.safetensors: x has SHA-256 " + Sha256("abcd") + ", want " +
                        Sha256("abce")));
}

TEST_F(ModelFolderTest, TensorsOfAnotherFolderAreReadFromItsFiles) {
  Write("a.safetensors", {{"x", "F32", {1}, "abcd"}});
  Write("b.safetensors", {{"h.y", "F32", {1}, "efgh"}});
  auto folder = ModelFolder::OpenFiles(dir_, {"a.safetensors"});
  auto other = ModelFolder::OpenFiles(dir_, {"b.safetensors"});
  ASSERT_TRUE(folder.ok() && other.ok());
  const ModelFolder::Entry entry = other->tensors().at("h.y");
  folder->Add(*std::move(other), {{"y", entry}});
  EXPECT_THAT(folder->tensors(), SizeIs(2));
  EXPECT_EQ(DataOf(*folder, "x"), "abcd");
  EXPECT_EQ(DataOf(*folder, "y"), "efgh");
}

}  // namespace
}  // namespace thinwire
