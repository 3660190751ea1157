#include "coordinator/files/temporary_folder.h"

#include <stdlib.h>

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

TEST(TemporaryFolderTest, ATmpdirThatIsNotThereIsAnErrorThatNamesIt) {
  setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  EXPECT_THAT(std::string(TemporaryFolder::Make("mine").status().message()),
              AllOf(StartsWith("/nonexistent/mine-"), HasSubstr("No such file or directory")));
}

}  // namespace
}  // namespace thinwire
