#include "coordinator/files/folders.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReplaceFolderTest : public ::testing::Test {
 protected:
  ReplaceFolderTest() {
    fs::remove_all(root_);
    Make(with_, "newer");
  }
  static void Make(const std::string& dir, const std::string& file) {
    fs::create_directories(dir);
    std::ofstream(dir + "/" + file) << file;
  }

  const std::string root_ = ::testing::TempDir() + "/replace_folder";
  const std::string dir_ = root_ + "/dir", with_ = root_ + "/dir.tmp";
};

TEST_F(ReplaceFolderTest, TakesANameThatIsFree) {
  ASSERT_TRUE(ReplaceFolder(dir_, with_).ok());
  EXPECT_TRUE(fs::exists(dir_ + "/newer"));
  EXPECT_FALSE(fs::exists(with_));
}

TEST_F(ReplaceFolderTest, TakesTheNameOfAnother) {
  Make(dir_, "older");
  ASSERT_TRUE(ReplaceFolder(dir_, with_).ok());
  EXPECT_TRUE(fs::exists(dir_ + "/newer"));
  EXPECT_FALSE(fs::exists(dir_ + "/older"));
  EXPECT_FALSE(fs::exists(dir_ + ".old"));
}

TEST_F(ReplaceFolderTest, AFolderThatIsNotThereIsNamedAndTheOtherKept) {
  Make(dir_, "older");
  EXPECT_THAT(std::string(ReplaceFolder(dir_, root_ + "/none").message()),
              HasSubstr(dir_ + ": cannot replace the folder: No such file"));
  EXPECT_TRUE(fs::exists(dir_ + "/older"));
}

}  // namespace
}  // namespace thinwire
