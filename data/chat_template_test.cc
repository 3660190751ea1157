#include "data/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Folders with templates. Known ones are held to their formats in tests/parity/chats_test.py.
class ChatTemplateTest : public testing::Test {
 protected:
  ChatTemplateTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  ~ChatTemplateTest() override { std::filesystem::remove_all(dir_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ + "/" + name) << content;
  }
  std::string Refusal() const { return std::string(FormatOfTemplate(dir_).status().message()); }

  const std::string dir_ = testing::TempDir() + "/chat_template";
};

constexpr char kSha256OfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST_F(ChatTemplateTest, AFolderWithoutOneIsTold) {
  EXPECT_EQ(FormatOfTemplate(dir_).status().code(), absl::StatusCode::kNotFound);
  for (const char* const config :
       {"{}", R"({"chat_template": null})",
        R"({"chat_template": [{"name": "tools", "template": "abc"}]})"}) {
    Write("tokenizer_config.json", config);
    EXPECT_THAT(Refusal(),
                HasSubstr(dir_ + " has no chat template; want data.chat with the strings "
                                 "of the format, or the conversations as ids: "));
  }
  Write("tokenizer_config.json", "[");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer_config.json"));
}

TEST_F(ChatTemplateTest, OneThatIsNotKnownIsNamedByItsDigest) {
  for (const char* const config :
       {R"({"chat_template": "abc"})",
        R"({"chat_template": [{"name": "tools", "template": "x"}, {"name": "default", "template": )"
        R"("abc"}]})"}) {
    Write("tokenizer_config.json", config);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr(kSha256OfAbc), HasSubstr("which is not known; want"),
                                 HasSubstr("python -m thinwire.prepare --chat")));
  }
}

TEST_F(ChatTemplateTest, AFileOfItsOwnComesFirst) {
  Write("tokenizer_config.json", R"({"chat_template": "x"})");
  Write("chat_template.jinja", "abc");
  EXPECT_THAT(Refusal(), HasSubstr(kSha256OfAbc));
}

}  // namespace
}  // namespace thinwire
