#include "config/run_name.h"

#include <string>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(RunNameTest, IsTheFilesNameWithoutFolderAndExtension) {
  EXPECT_EQ(RunNameOf("experiments/quickstart.yaml"), "quickstart");
  EXPECT_EQ(RunNameOf("quickstart"), "quickstart");
  EXPECT_EQ(RunNameOf("a.b/topk_0.1-v2.yaml"), "topk_0.1-v2");
}

TEST(RunNameTest, HasADashForWhatNoNameMayHave) {
  EXPECT_EQ(RunNameOf("my exp.yaml"), "my-exp");
  EXPECT_EQ(RunNameOf("my exp (2).yaml"), "my-exp-2");
  EXPECT_EQ(RunNameOf("gro\xc3\x9f & klein.yaml"), "gro-klein");
  EXPECT_EQ(RunNameOf("- a.yaml"), "a");
}

TEST(RunNameTest, FitsTheLongestName) {
  EXPECT_TRUE(CheckRunName(RunNameOf(std::string(200, 'x') + ".yaml")).ok());
}

TEST(RunNameTest, IsEmptyWhereNothingIsLeft) {
  for (const char* path : {"\xe6\x97\xa5.yaml", " .yaml", ".yaml", "..yaml", "dir/", "", "-"}) {
    EXPECT_EQ(RunNameOf(path), "") << path;
  }
}

TEST(RunNameTest, IsRefusedWithWhatMakesOne) {
  EXPECT_TRUE(CheckRunName("my-exp_2.1").ok());
  for (const char* name : {"", ".", "..", "-a", "a b", "a/b", "\xc3\x9f"}) {
    const absl::Status status = CheckRunName(name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find("want 1 to 128 letters"), std::string::npos);
  }
}

}  // namespace
}  // namespace thinwire
