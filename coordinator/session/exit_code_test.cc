#include "coordinator/session/exit_code.h"

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

std::string Complained(const std::string& message) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Complain(absl::InternalError(message), kExitFailed), kExitFailed);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ComplainTest, SaysTheMessageOverSeveralLinesIfItHasThem) {
  EXPECT_EQ(Complained("stage 1 is gone\n  also: stage 0"),
            "thinwire: stage 1 is gone\n  also: stage 0\n");
}

TEST(ComplainTest, WhatAPeerSaidReachesTheTerminalHarmlessAndShort) {
  EXPECT_EQ(Complained("stage 1: \x1b]0;owned\a\xff"),
            "thinwire: stage 1: \\x1b]0;owned\\x07\\xff\n");
  const std::string cut = Complained(std::string(1 << 20, 'x'));
  EXPECT_LT(cut.size(), 4200u);
  EXPECT_THAT(cut, StartsWith("thinwire: xxx"));
  EXPECT_THAT(cut, EndsWith("(1044480 more bytes)\n"));
}

TEST(ExitOfPathTest, AWrongPathIsTheUsersAndAFullDiskIsNot) {
  for (const int error : {ENOENT, ENOTDIR, EACCES, EEXIST, EISDIR, EROFS}) {
    EXPECT_EQ(ExitOfPath(absl::ErrnoToStatus(error, "")), kExitUsage) << error;
  }
  for (const int error : {ENOSPC, EDQUOT, EFBIG, EIO}) {
    EXPECT_EQ(ExitOfPath(absl::ErrnoToStatus(error, "")), kExitFailed) << error;
  }
}

}  // namespace
}  // namespace thinwire
