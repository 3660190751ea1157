#include <sys/resource.h>

#include "base/resources.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RaiseDescriptorLimitTest, TakesWhatTheSystemGives) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(*RaiseDescriptorLimit(64), limit.rlim_max);
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
}

TEST(RaiseDescriptorLimitTest, TooFewAreAnErrorThatNamesBothNumbers) {
  const rlimit few = {40, 40};
  // Cannot be undone, so this is the last test of its process.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const absl::Status status = RaiseDescriptorLimit(128).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("at most 40 files"), HasSubstr("want at least 128"), HasSubstr("ulimit -n")));
}

}  // namespace
}  // namespace thinwire
