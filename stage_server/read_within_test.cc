#include "stage_server/read_within.h"

#include <unistd.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(ReadWithinTest, GivesWhatWasRead) {
  EXPECT_EQ(*ReadWithin<int>(absl::Minutes(1), "a file", [] { return 7; }), 7);
  const absl::StatusOr<int> failed = ReadWithin<int>(
      absl::Minutes(1), "a file", [] { return absl::DataLossError("a file is cut off"); });
  EXPECT_EQ(failed.status(), absl::DataLossError("a file is cut off"));
}

TEST(ReadWithinTest, NamesWhatCannotBeRead) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const absl::StatusOr<int> late =
      ReadWithin<int>(absl::Milliseconds(50), "data.dir: /mnt/far", [fd = pipe_ends[0]] {
        char byte;
        return static_cast<int>(read(fd, &byte, 1));
      });
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.status().message()),
              ::testing::HasSubstr("data.dir: /mnt/far: not read within 50ms"));
  close(pipe_ends[1]);  // lets the thread end
}

}  // namespace
}  // namespace thinwire
