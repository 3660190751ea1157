#include "base/build_info.h"

#include <gtest/gtest.h>

#include <sstream>

namespace thinwire {
namespace {

std::string ModelIn(const std::string& text) {
  std::istringstream cpuinfo(text);
  return CpuModelIn(cpuinfo);
}

TEST(CpuModelTest, IsTheFirstModelName) {
  EXPECT_EQ(ModelIn("processor\t: 0\nmodel\t\t: 143\nmodel name\t: Xeon: 8480\nmodel name\t: b\n"),
            "Xeon: 8480");
}

TEST(CpuModelTest, IsUnknownWithoutAName) {
  EXPECT_EQ(ModelIn(""), "unknown");
  EXPECT_EQ(ModelIn("model name\n"), "unknown");
  EXPECT_EQ(ModelIn("model name\t:\n"), "unknown");
}

}  // namespace
}  // namespace thinwire
