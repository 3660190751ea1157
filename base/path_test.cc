#include "base/path.h"

#include <stdlib.h>

#include <filesystem>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(WithHomeTest, ALeadingTildeIsTheHomeFolder) {
  setenv("HOME", "/home/ada", /*overwrite=*/1);
  EXPECT_EQ(WithHome("~"), "/home/ada");
  EXPECT_EQ(WithHome("~/data/a b"), "/home/ada/data/a b");
  for (const char* other : {"", "~ada/data", "data/~/x", "./~", "/~"}) {
    EXPECT_EQ(WithHome(other), other);
  }
}

TEST(WithHomeTest, WithoutAHomeATildeStays) {
  unsetenv("HOME");
  EXPECT_EQ(WithHome("~/data"), "~/data");
}

TEST(AbsolutePathTest, BeginsInTheWorkingDirectory) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(AbsolutePath("data/x"), here + "/data/x");
  EXPECT_EQ(AbsolutePath("./data"), here + "/data");
  EXPECT_EQ(AbsolutePath("../data"), here + "/../data");
  EXPECT_EQ(AbsolutePath("/data/../x"), "/data/../x");
  EXPECT_EQ(AbsolutePath(""), "");
}

}  // namespace
}  // namespace thinwire
