#include "data/chat_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Returns the text, with answers in brackets.
std::string Marked(const ChatFormat& format, const std::vector<ChatMessage>& messages) {
  const auto passages = WrittenAs(format, messages);
  if (!passages.ok()) return std::string(passages.status().message());
  std::string text;
  bool was_answer = false;
  for (const ChatPassage& passage : *passages) {
    if (passage.is_answer != was_answer) text += passage.is_answer ? "[" : "]";
    was_answer = passage.is_answer;
    text += passage.text;
  }
  return was_answer ? text + "]" : text;
}

std::string Marked(ChatKind kind, const std::vector<ChatMessage>& messages) {
  return Marked(KnownChatFormat(kind), messages);
}

const std::vector<ChatMessage> kTalk = {
    {"user", "Hi "}, {"assistant", " Ho\n"}, {"user", "So?"}, {"assistant", "No."}};

TEST(ChatFormatTest, KnownFormatsAreWhatTheirModelsHaveSeen) {
  EXPECT_EQ(Marked(ChatKind::kChatml, kTalk),
            "<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\n[ Ho\n<|im_end|>\n]"
            "<|im_start|>user\nSo?<|im_end|>\n<|im_start|>assistant\n[No.<|im_end|>\n]");
  EXPECT_EQ(Marked(ChatKind::kLlama3, {kTalk[0], kTalk[1]}),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[Ho<|eot_id|>]");
  EXPECT_EQ(Marked(ChatKind::kMistral, {kTalk[2], kTalk[3]}), "<s>[INST] So? [/INST] [No.</s>]");
  EXPECT_EQ(Marked(ChatKind::kZephyr, {{"system", "Be."}, kTalk[2], kTalk[3]}),
            "<|system|>\nBe.</s>\n<|user|>\nSo?</s>\n<|assistant|>\n[No.</s>\n]");
  EXPECT_EQ(Marked(ChatKind::kGemma, {kTalk[0], kTalk[1]}),
            "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n[Ho<end_of_turn>\n]");
}

TEST(ChatFormatTest, ADefaultSystemMessageStandsWhereThereIsNone) {
  ChatFormat format = KnownChatFormat(ChatKind::kZephyr);
  format.default_system = "Be kind.";
  EXPECT_EQ(Marked(format, {kTalk[2]}), "<|system|>\nBe kind.</s>\n<|user|>\nSo?</s>\n");
  EXPECT_EQ(Marked(format, {{"system", "Be."}}), "<|system|>\nBe.</s>\n");
}

TEST(ChatFormatTest, TrimmingTakesSpacesOfAllKindsAtTheEndsOnly) {
  EXPECT_EQ(Marked(ChatKind::kGemma, {{"user", "\t\u3000a\u00a0b\u00a0\n"}}),
            "<bos><start_of_turn>user\na\u00a0b<end_of_turn>\n");
  EXPECT_EQ(Marked(ChatKind::kGemma, {{"user", " \n"}}),
            "<bos><start_of_turn>user\n<end_of_turn>\n");
}

TEST(ChatFormatTest, AnAnswerBeginsBehindItsFront) {
  const auto front = [](ChatKind kind) {
    const auto written = WrittenForAnswer(KnownChatFormat(kind), {{"user", "a"}});
    std::string text(written.status().message());
    for (const ChatPassage& passage : written.value_or(std::vector<ChatPassage>())) {
      text += passage.text;
    }
    return text;
  };
  EXPECT_EQ(front(ChatKind::kChatml), "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(front(ChatKind::kMistral), "<s>[INST] a [/INST]") << "the space is the answer's";
  EXPECT_EQ(EndOfAnswer(KnownChatFormat(ChatKind::kChatml)), "<|im_end|>");
  EXPECT_EQ(EndOfAnswer(KnownChatFormat(ChatKind::kLlama3)), "<|eot_id|>");
  EXPECT_EQ(EndOfAnswer(ChatFormat()), "");
  ChatFormat plain;
  plain.assistant = "A: {}\n";
  EXPECT_EQ(EndOfAnswer(plain), "\n");
  EXPECT_FALSE(WrittenForAnswer(KnownChatFormat(ChatKind::kGemma), {{"system", "a"}}).ok());
}

TEST(ChatFormatTest, ARoleThatTheFormatLacksIsNamed) {
  EXPECT_EQ(Marked(ChatKind::kChatml, {kTalk[0], {"tool", "3"}}),
            "messages[1]: role is tool, want system, user or assistant");
  EXPECT_EQ(Marked(ChatKind::kGemma, {{"system", "a"}}),
            "messages[0]: role is system, which format gemma does not have");
  EXPECT_EQ(Marked(ChatKind::kChatml, {}), "messages is empty, want at least one");
}

TEST(ChatFormatTest, OwnStringsHaveAPlaceForTheContent) {
  ChatFormat format = KnownChatFormat(ChatKind::kOwn);
  EXPECT_EQ(CheckChatFormat(format).message(), "user: \"\", want {} in it once, for the content");
  format.user = "U: {}\n";
  format.assistant = "A: {} {}\n";
  EXPECT_THAT(std::string(CheckChatFormat(format).message()), HasSubstr("assistant: \"A: {} {}"));
  format.assistant = "A: {}\n";
  format.end = "--";
  EXPECT_TRUE(CheckChatFormat(format).ok());
  EXPECT_EQ(Marked(format, {kTalk[2], kTalk[3]}), "U: So?\nA: [No.\n]--");
  format.default_system = "x";
  EXPECT_THAT(std::string(CheckChatFormat(format).message()), HasSubstr("system: \"\""));
  for (const ChatKind kind : thinwire::AllOf<ChatKind>()) {
    const bool has_strings = kind != ChatKind::kOwn && kind != ChatKind::kAuto;
    EXPECT_EQ(CheckChatFormat(KnownChatFormat(kind)).ok(), has_strings) << Name(kind);
  }
}

}  // namespace
}  // namespace thinwire
