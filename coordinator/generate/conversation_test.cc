#include "coordinator/generate/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/status/status.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// A token for each byte below 128; '#' has none.
class AsciiTokenizer : public Tokenizer {
 public:
  int32_t vocabulary() const override { return 128; }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override {
    if (text.find('#') != text.npos) return absl::InvalidArgumentError("\"#\" has no id");
    return std::vector<int32_t>(text.begin(), text.end());
  }
  const std::string& digest() const override { return digest_; }

 private:
  void Append(int32_t id, std::string* text) const override {
    text->push_back(static_cast<char>(id));
  }
  const std::string digest_;
};

ChatFormat Format() {
  ChatFormat format = KnownChatFormat(ChatKind::kOwn);
  format.begin = "^";
  format.system = "S:{}|";
  format.user = "U:{}|";
  format.assistant = "A: {}|";
  format.end = "$";
  return format;
}

class ConversationTest : public ::testing::Test {
 protected:
  std::string Asked(const std::string& message) {
    const auto ids = conversation_->Ask(message);
    return ids.ok() ? *tokenizer_.Decode(*ids) : std::string(ids.status().message());
  }

  const AsciiTokenizer tokenizer_{};
  std::unique_ptr<Conversation> conversation_ =
      std::make_unique<Conversation>(&tokenizer_, Format(), "s", 30, 10);
};

TEST_F(ConversationTest, IdsEndWhereTheAnswerBegins) {
  EXPECT_EQ(Asked("a"), "^S:s|U:a|A:");
  conversation_->Answer("b");
  EXPECT_EQ(Asked("c"), "^S:s|U:a|A: b|U:c|A:");
  conversation_ = std::make_unique<Conversation>(&tokenizer_, Format(), "", 30, 10);
  EXPECT_EQ(Asked("a"), "^U:a|A:");
}

TEST_F(ConversationTest, TheOldestPairsAreForgotten) {
  for (const char* const message : {"a", "c"}) {
    Asked(message);
    conversation_->Answer("b");
  }
  EXPECT_EQ(conversation_->forgotten(), 0);
  EXPECT_EQ(Asked("e"), "^S:s|U:c|A: b|U:e|A:");
  EXPECT_EQ(conversation_->forgotten(), 2);
  conversation_->Answer("b");
  EXPECT_EQ(Asked("0123456789"), "^S:s|U:0123456789|A:");
  EXPECT_EQ(conversation_->forgotten(), 6);
}

TEST_F(ConversationTest, WhatIsRefusedIsNotAdded) {
  Asked("a");
  conversation_->Answer("b");
  EXPECT_EQ(Asked("#"), "\"#\" has no id");
  EXPECT_THAT(Asked("0123456789a"), HasSubstr("makes 21 tokens, want at most 20 in front"));
  EXPECT_EQ(Asked("c"), "^S:s|U:a|A: b|U:c|A:") << "nor was anything forgotten for it";
}

TEST_F(ConversationTest, ARoleThatTheFormatLacksIsNamed) {
  conversation_ =
      std::make_unique<Conversation>(&tokenizer_, KnownChatFormat(ChatKind::kGemma), "s", 30, 10);
  EXPECT_THAT(Asked("a"), HasSubstr("role is system, which format gemma does not have"));
}

}  // namespace
}  // namespace thinwire
