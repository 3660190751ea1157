#include "coordinator/files/temporary_folder.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TemporaryFolderTest, StandsWhereTmpdirSaysAndGoesWithItsFiles) {
  const std::string place = ::testing::TempDir() + "/place";
  fs::create_directories(place);
  setenv("TMPDIR", place.c_str(), /*overwrite=*/1);
  auto folder = TemporaryFolder::Make("mine");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT((*folder)->path(), StartsWith(place + "/mine-"));
  EXPECT_EQ(fs::status((*folder)->path()).permissions(), fs::perms::owner_all);
  std::ofstream((*folder)->path() + "/file") << "x";
  folder->reset();
  EXPECT_TRUE(fs::is_empty(place));
}

TEST(TemporaryFolderTest, WhatAKilledProcessLeftIsRemovedByTheNext) {
  const std::string place = ::testing::TempDir() + "/swept";
  fs::create_directories(place + "/somebody's");
  auto held = TemporaryFolder::Make("mine", place);
  ASSERT_TRUE(held.ok()) << held.status();
  const pid_t killed = fork();
  if (killed == 0) {
    auto left = TemporaryFolder::Make("thinwire-other", place);
    if (left.ok()) std::ofstream((*left)->path() + "/stage-0.sock") << "x";
    _exit(left.ok() ? 0 : 1);  // skips the destructor
  }
  int status = -1;
  ASSERT_EQ(waitpid(killed, &status, 0), killed);
  ASSERT_EQ(status, 0);
  const auto folders = [&] {
    return std::distance(fs::directory_iterator(place), fs::directory_iterator());
  };
  EXPECT_EQ(folders(), 3);
  auto next = TemporaryFolder::Make("mine", place);
  EXPECT_EQ(folders(), 3);  // one was removed and one was made
  EXPECT_TRUE(fs::exists((*held)->path()));
  EXPECT_TRUE(fs::exists(place + "/somebody's"));
}

TEST(TemporaryFolderTest, ATmpdirThatIsNotThereIsAnErrorThatNamesIt) {
  setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  EXPECT_THAT(std::string(TemporaryFolder::Make("mine").status().message()),
              AllOf(StartsWith("/nonexistent/mine-"), HasSubstr("No such file or directory")));
}

}  // namespace
}  // namespace thinwire
