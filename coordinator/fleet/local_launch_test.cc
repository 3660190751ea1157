#include "coordinator/fleet/local_launch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(FindStageServerTest, NamesBothPathsWhenItIsInNeither) {
  EXPECT_THAT(std::string(FindStageServer("/opt/x/coordinator/thinwire").status().message()),
              AllOf(HasSubstr("/opt/x/stage_server/stage_server"),
                    HasSubstr("/opt/x/coordinator/stage_server")));
}

}  // namespace
}  // namespace thinwire
