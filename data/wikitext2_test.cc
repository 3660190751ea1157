#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "data/known_sets.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Wikitext2Test : public testing::Test {
 protected:
  Wikitext2Test() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    options_.dir = testing::TempDir() + "/wikitext2_" + test->name();
    options_.verify = false;
    std::filesystem::create_directories(options_.dir + "/wikitext-2");
    Write("wiki.train.tokens", "train = <unk>");
    Write("wiki.valid.tokens", "valid");
  }
  ~Wikitext2Test() override { std::filesystem::remove_all(options_.dir); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(options_.dir + "/wikitext-2/" + name, std::ios::binary) << text;
  }
  std::string Refusal(absl::StatusCode code) {
    const absl::Status status = ReadWikitext2(options_).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  DataOptions options_;
};

TEST_F(Wikitext2Test, ReadsTheFolderOrTheOneInIt) {
  for (const std::string& dir : {options_.dir, options_.dir + "/wikitext-2"}) {
    DataOptions options = options_;
    options.dir = dir;
    const auto text = ReadWikitext2(options);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(text->train, "train = <unk>");
    EXPECT_EQ(text->test, "valid");
    EXPECT_EQ(text->folder, options_.dir + "/wikitext-2");
  }
}

TEST_F(Wikitext2Test, AMissingFileIsNamedWithHowToGetIt) {
  std::filesystem::remove(options_.dir + "/wikitext-2/wiki.valid.tokens");
  EXPECT_THAT(
      Refusal(absl::StatusCode::kNotFound),
      AllOf(HasSubstr("wikitext-2/wiki.valid.tokens"), HasSubstr("thinwire data fetch wikitext2")));
}

TEST_F(Wikitext2Test, ATruncatedFileIsNamedWithSizeAndChecksum) {
  options_.verify = true;
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("wiki.train.tokens has SHA-256 "), HasSubstr("(13 bytes), want 9e9f"),
                    HasSubstr("(10797148 bytes)")));
}

}  // namespace
}  // namespace thinwire
