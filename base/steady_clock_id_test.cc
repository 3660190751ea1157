#include "base/steady_clock_id.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(SteadyClockIdTest, IsThatOfAnotherProcessOfThisMachine) {
  const std::string own = SteadyClockId();
  ASSERT_FALSE(own.empty());
  const pid_t child = fork();
  if (child == 0) _exit(SteadyClockId() == own ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace thinwire
