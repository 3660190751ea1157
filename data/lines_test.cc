#include "data/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LinesTest : public testing::Test {
 protected:
  ~LinesTest() override { std::filesystem::remove(path_); }

  void Write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::vector<std::string> Lines(const std::string& bytes) const {
    Write(bytes);
    std::vector<std::string> lines;
    const absl::Status status = ForEachLine(path_, [&lines](std::string_view line) {
      lines.emplace_back(line);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return lines;
  }

  const std::string path_ = testing::TempDir() + "/lines_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(LinesTest, TheLastLineNeedsNoEnd) {
  EXPECT_THAT(Lines("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(Lines("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(Lines(""), IsEmpty());
  EXPECT_THAT(Lines("\xEF\xBB\xBF{}\r\n"), ElementsAre("{}\r"));
}

TEST_F(LinesTest, LinesGoOnWhereAPieceOfTheFileEnds) {
  const std::string first(1'048'575, 'a'), second(2'500'000, 'b');
  EXPECT_THAT(Lines(first + "\n" + second + "\nc"), ElementsAre(first, second, "c"));
  EXPECT_THAT(Lines(first + "a\n\nc"), ElementsAre(first + "a", "", "c"));
}

TEST_F(LinesTest, AnErrorNamesTheFileAndTheLine) {
  Write("a\nb\nc");
  const absl::Status status = ForEachLine(path_, [](std::string_view line) {
    return line == "c" ? absl::InvalidArgumentError("is c") : absl::OkStatus();
  });
  EXPECT_EQ(status.message(), path_ + ":3: is c");
  const auto any = [](std::string_view) { return absl::OkStatus(); };
  EXPECT_EQ(ForEachLine(path_ + "none", any).code(), absl::StatusCode::kNotFound);
  Write("version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(std::string(ForEachLine(path_, any).message()), HasSubstr("Git LFS"));
  gzFile packed = gzopen(path_.c_str(), "wb");
  gzwrite(packed, (std::string(257, 'a') + "ustar\n").c_str(), 263);
  gzclose(packed);
  EXPECT_EQ(ForEachLine(path_, any).message(), path_ + ": is packed (tar), want it unpacked");
}

TEST_F(LinesTest, ALineLongerThanAnyIsRefused) {
  Write("a\n");
  std::filesystem::resize_file(path_, kMaxLineBytes + 3);
  EXPECT_EQ(ForEachLine(path_, [](std::string_view) { return absl::OkStatus(); }).message(),
            path_ + ":2: has more than 134217728 bytes, want no more");
}

}  // namespace
}  // namespace thinwire
