#include "data/file_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileListTest : public testing::Test {
 protected:
  FileListTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/file_list_" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/below");
  }
  ~FileListTest() override { std::filesystem::remove_all(folder_); }

  void Make(const std::string& name) const { std::ofstream(folder_ + "/" + name) << "a"; }

  // Returns the names, relative to the folder, of what `path` there stands for.
  std::vector<std::string> Names(const std::string& path) const {
    const auto files = FilesAt("data.file", folder_ + path);
    EXPECT_TRUE(files.ok()) << files.status();
    std::vector<std::string> names;
    for (const std::string& file : files.value_or(std::vector<std::string>())) {
      names.push_back(file.substr(folder_.size() + 1));
    }
    return names;
  }

  std::string Refusal(const std::string& path) const {
    const absl::Status status = FilesAt("data.file", folder_ + path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    return std::string(status.message());
  }

  std::string folder_;
};

TEST_F(FileListTest, APathOfAFileIsThatFileThoughItLooksLikeAPattern) {
  Make("a[1].bin");
  Make("a1.bin");
  EXPECT_THAT(Names("/a[1].bin"), ElementsAre("a[1].bin"));
}

TEST_F(FileListTest, APatternIsTheFilesOfItsFolderInTheOrderOfTheirBytes) {
  for (const char* name : {"b.bin", "a10.bin", "a2.bin", "B.bin", "a.txt", ".bin"}) Make(name);
  Make("below/c.bin");
  EXPECT_THAT(Names("/*.bin"), ElementsAre("B.bin", "a10.bin", "a2.bin", "b.bin"));
  EXPECT_THAT(Names("/a?.bin"), ElementsAre("a2.bin"));
  EXPECT_THAT(Names("/[a-b].bin"), ElementsAre("b.bin"));
}

TEST_F(FileListTest, AFolderIsAllInItAndBelowButHiddenFiles) {
  std::filesystem::create_directories(folder_ + "/.git");
  for (const char* name : {"z", "below/a", ".hidden", ".git/a"}) Make(name);
  EXPECT_THAT(Names(""), ElementsAre("below/a", "z"));
}

TEST_F(FileListTest, WhatProgramsHereKeepBesideATextIsLeftOutAndOtherTokensAreNot) {
  const std::string digest(64, 'f');
  for (const char* name : {"wiki.train.tokens", "0f.tokens"}) Make(name);
  for (const char* end : {".tokens", ".tokens.aB3xYz", ".packs"}) {
    Make(digest + end);
    Make("." + digest + end);
  }
  for (const char* path : {"", "/*"}) {
    EXPECT_THAT(Names(path), ElementsAre("0f.tokens", "wiki.train.tokens")) << path;
  }
  EXPECT_THAT(Names("/" + digest + ".tokens"), ElementsAre(digest + ".tokens"));
}

TEST_F(FileListTest, LinksToFilesAreFollowedAndThoseToFoldersAreNot) {
  std::filesystem::create_directories(folder_ + "/a");
  for (const char* name : {"a/file", "below/other"}) Make(name);
  std::filesystem::create_symlink(folder_ + "/a/file", folder_ + "/below/link");
  std::filesystem::create_directory_symlink(folder_ + "/a", folder_ + "/below/folder");
  EXPECT_THAT(Names("/below"), ElementsAre("below/link", "below/other"));
  EXPECT_THAT(Names("/below/folder"), ElementsAre("below/folder/file")) << "it is asked for";
}

TEST_F(FileListTest, WhereNothingIsAnErrorNamesTheFieldAndThePath) {
  EXPECT_THAT(Refusal("/none"), HasSubstr("cannot read data.file " + folder_ + "/none: there is "));
  EXPECT_THAT(Refusal("/*.bin"), HasSubstr("/*.bin: no file there matches"));
  EXPECT_THAT(Refusal("/below"), HasSubstr("/below: the folder has no files"));
  EXPECT_THAT(Refusal("/none/*.bin"), HasSubstr("/none: cannot read"));
}

}  // namespace
}  // namespace thinwire
