#include "data/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::string& line) {
  const absl::Status status = ParseExample(line).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(status.message());
}

TEST(ParseExampleTest, ATextAnAnswerAndAConversationAreRead) {
  EXPECT_EQ(*ParseExample(R"({"text": "a\n\"b\" \u00e9"})")->text, "a\n\"b\" é");
  const auto answered = ParseExample(R"( {"completion": "c", "prompt": ""} )");
  ASSERT_TRUE(answered.ok()) << answered.status();
  EXPECT_EQ(*answered->prompt, "");
  EXPECT_EQ(*answered->completion, "c");
  const auto chat = ParseExample(
      R"({"messages": [{"role": "user", "content": "Hi"}, {"content": "Ho", "role": "assistant"}]})");
  ASSERT_TRUE(chat.ok()) << chat.status();
  ASSERT_EQ(chat->messages->size(), 2u);
  EXPECT_EQ((*chat->messages)[0].role, "user");
  EXPECT_EQ((*chat->messages)[1].role, "assistant");
  EXPECT_EQ((*chat->messages)[1].content, "Ho");
}

TEST(ParseExampleTest, OtherKeysDoNotCountWhateverTheyHold) {
  const auto example = ParseExample(
      R"({"id": 7, "meta": {"text": 1, "messages": [[{"role": 2}]]}, "text": "a", "tags": ["text"]})");
  ASSERT_TRUE(example.ok()) << example.status();
  EXPECT_EQ(*example->text, "a");
  EXPECT_FALSE(example->messages.has_value());
  EXPECT_TRUE(
      ParseExample(R"({"messages": [{"role": "user", "content": "a", "calls": [{"role": 1}]}]})")
          .ok());
}

TEST(ParseExampleTest, WhatIsMissingOrOfAnotherTypeIsNamed) {
  EXPECT_EQ(Refusal("[1]"), "is a list, want a JSON map");
  EXPECT_EQ(Refusal("7"), "is a number, want a JSON map");
  EXPECT_EQ(Refusal("{}"), "has none of text, prompt and completion, and messages");
  EXPECT_THAT(Refusal(R"({"text": "a", "messages": []})"), HasSubstr("has several of text"));
  EXPECT_EQ(Refusal(R"({"prompt": "a"})"), "has a prompt, but no completion");
  EXPECT_EQ(Refusal(R"({"completion": "a"})"), "has a completion, but no prompt");
  EXPECT_EQ(Refusal(R"({"text": 3})"), "text is a number, want a text");
  EXPECT_EQ(Refusal(R"({"text": {"a": 1}})"), "text is a map, want a text");
  EXPECT_EQ(Refusal(R"({"prompt": ["a"], "completion": "b"})"), "prompt is a list, want a text");
  EXPECT_EQ(Refusal(R"({"messages": "a"})"), "messages is a text, want a list");
  EXPECT_EQ(Refusal(R"({"messages": ["a"]})"), "messages[0] is a text, want a map");
  EXPECT_EQ(Refusal(R"({"messages": [[]]})"), "messages[0] is a list, want a map");
  EXPECT_EQ(Refusal(R"({"messages": [{"role": "user"}]})"), "messages[0] has no content");
  EXPECT_EQ(Refusal(R"({"messages": [{"role": "a", "content": ""}, {"content": "b"}]})"),
            "messages[1] has no role");
  EXPECT_EQ(Refusal(R"({"messages": [{"role": "assistant", "content": null}]})"),
            "messages[0].content is null, want a text");
}

TEST(ParseExampleTest, KeysMayHaveOtherNames) {
  const ExampleKeys keys = {"body", "prompt", "text", "turns"};
  EXPECT_EQ(*ParseExample(R"({"body": "a"})", keys)->text, "a");
  const auto answered = ParseExample(R"({"prompt": "a", "text": "b"})", keys);
  ASSERT_TRUE(answered.ok()) << answered.status();
  EXPECT_EQ(*answered->completion, "b");
  EXPECT_EQ(ParseExample(R"({"turns": [{"role": "user"}]})", keys).status().message(),
            "turns[0] has no content");
  EXPECT_EQ(ParseExample("{}", keys).status().message(),
            "has none of body, prompt and text, and turns");
}

TEST(CheckExampleKeysTest, EachPartHasAKeyOfItsOwn) {
  EXPECT_TRUE(CheckExampleKeys({}).ok());
  EXPECT_TRUE(CheckExampleKeys({"prompt", "text", "a", "b"}).ok());
  EXPECT_EQ(CheckExampleKeys({"a", "b", "c", "b"}).message(),
            "prompt and messages are both b, want different keys");
  EXPECT_EQ(CheckExampleKeys({"a", "b", "", "d"}).message(), "completion: want a key");
}

TEST(ParseExampleTest, WhatIsNoJsonIsNamedByItsByte) {
  EXPECT_EQ(Refusal(R"({"text": "a)"), "byte 12 is no JSON");
  EXPECT_THAT(Refusal(R"({"text": "a"} {"text": "b"})"), HasSubstr("is no JSON"));
  EXPECT_THAT(Refusal(R"({"text": "\ud800"})"), HasSubstr("is no JSON")) << "half a character";
  EXPECT_THAT(Refusal("{\"text\": \"\xFF\"}"), HasSubstr("is no JSON")) << "no UTF-8";
}

TEST(ParseExampleTest, DeepNestingTakesLittleAndAZeroIsACharacter) {
  const std::string deep(1 << 20, '[');
  EXPECT_THAT(Refusal("{\"a\": " + deep), HasSubstr("is no JSON"));
  EXPECT_TRUE(
      ParseExample("{\"a\": " + deep + std::string(1 << 20, ']') + ", \"text\": \"\"}").ok());
  EXPECT_EQ(ParseExample(R"({"text": "a\u0000b"})")->text->size(), 3u);
}

}  // namespace
}  // namespace thinwire
