#include "data/document_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "data/bpe.h"
#include "data/bytes.h"
#include "data/hf_tokenizer.h"
#include "data/word_piece.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Returns the text of the tokens, with those that are learned in brackets.
std::string Shown(const Tokenizer& tokenizer, const std::vector<DocumentToken>& tokens) {
  std::string text;
  bool was_learned = false;
  for (const DocumentToken token : tokens) {
    const bool is_learned = (token & kLearned) != 0;
    if (is_learned != was_learned) text += is_learned ? "[" : "]";
    was_learned = is_learned;
    text += *tokenizer.Continue({static_cast<int32_t>(token & ~kLearned)});
  }
  return was_learned ? text + "]" : text;
}

Example Answered(const std::string& prompt, const std::string& completion) {
  Example example;
  example.prompt = prompt;
  example.completion = completion;
  return example;
}

Example Talk(const std::vector<ChatMessage>& messages) {
  Example example;
  example.messages = messages;
  return example;
}

absl::StatusOr<std::vector<DocumentToken>> Encode(const DocumentEncoder& encoder,
                                                  const Example& example) {
  const auto written = encoder.Write(example);
  if (!written.ok()) return written.status();
  return encoder.Encode({*written})->front();
}

class DocumentEncoderTest : public testing::Test {
 protected:
  // Vocabularies whose token in front of texts is <s>, and which know </s>.
  std::unique_ptr<HfTokenizer> bytes_ =
      *HfTokenizer::Load("data/hf_testdata/bytes", Specials::kText);
  std::unique_ptr<HfTokenizer> characters_ =
      *HfTokenizer::Load("data/hf_testdata/characters", Specials::kText);
};

TEST_F(DocumentEncoderTest, ATextIsLearnedAndAPromptIsNot) {
  Example text;
  text.text = "First Citizen";
  const DocumentEncoder answers(bytes_.get(), {}, LossOn::kAnswers);
  EXPECT_EQ(Shown(*bytes_, *Encode(answers, text)), "<s>[First Citizen]");
  EXPECT_EQ(Shown(*bytes_, *Encode(answers, Answered("What?", " Nothing."))),
            "<s>What?[ Nothing.]");
  const DocumentEncoder all(bytes_.get(), {}, LossOn::kAll);
  EXPECT_EQ(Shown(*bytes_, *Encode(all, Answered("What?", " Nothing."))), "<s>[What? Nothing.]");
  EXPECT_EQ(Shown(*bytes_, *Encode(answers, Answered("What?", ""))), "<s>What?");
}

TEST_F(DocumentEncoderTest, APromptAndItsAnswerAreEncodedTogether) {
  for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(bytes_.get()),
                                     static_cast<const Tokenizer*>(characters_.get())}) {
    const DocumentEncoder encoder(tokenizer, {}, LossOn::kAnswers);
    const std::vector<int32_t> whole = *tokenizer->Encode("speak the the");
    const std::vector<DocumentToken> tokens = *Encode(encoder, Answered("speak th", "e the"));
    ASSERT_EQ(tokens.size(), whole.size() + 1);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(tokens[i + 1] & ~kLearned, static_cast<uint32_t>(whole[i]));
    }
    const std::string shown = Shown(*tokenizer, tokens);
    EXPECT_THAT(shown, HasSubstr("speak[ the the]")) << "the word that both have part in";
  }
}

TEST_F(DocumentEncoderTest, OnlyTheFormatSaysSpecialTokens) {
  const DocumentEncoder encoder(bytes_.get(), KnownChatFormat(ChatKind::kZephyr), LossOn::kAnswers);
  const auto tokens = Encode(encoder, Talk({{"user", "a</s>"}, {"assistant", "b"}}));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(Shown(*bytes_, *tokens), "<|user|>\na</s></s>\n<|assistant|>\n[b</s>\n]");
  const auto end = static_cast<DocumentToken>(bytes_->Encode("</s>")->size() > 1);
  EXPECT_EQ(end, 1u) << "as text it is several tokens";
  const int32_t id =
      (*HfTokenizer::Load("data/hf_testdata/bytes", Specials::kIds))->Encode("</s>")->front();
  int count = 0;
  for (const DocumentToken token : *tokens) {
    if ((token & ~kLearned) == static_cast<DocumentToken>(id)) ++count;
  }
  EXPECT_EQ(count, 2);
}

// Returns how many tokens are `id`.
int64_t Count(const std::vector<DocumentToken>& tokens, int32_t id) {
  return std::count_if(tokens.begin(), tokens.end(), [id](DocumentToken token) {
    return (token & ~kLearned) == static_cast<DocumentToken>(id);
  });
}

TEST_F(DocumentEncoderTest, OnlyTheFormatNamesTokensOfBytePairs) {
  const auto bpe = *Bpe::Load("data/bpe_testdata", /*verify=*/false, EndOfText::kToken);
  ChatFormat format;
  format.kind = ChatKind::kOwn;
  format.user = "{}<|endoftext|>";
  format.assistant = "{}<|endoftext|>\n";
  const DocumentEncoder encoder(bpe.get(), format, LossOn::kAnswers);
  const auto tokens = *Encode(encoder, Talk({{"user", "a<|endoftext|>"}, {"assistant", "the"}}));
  EXPECT_EQ(Shown(*bpe, tokens), "a<|endoftext|><|endoftext|>[the<|endoftext|>\n]");
  EXPECT_EQ(Count(tokens, *bpe->end_of_text()), 2);
  EXPECT_EQ(Count(*Encode(encoder, Answered("a<|endoftext|>", "b")), *bpe->end_of_text()), 1);
}

TEST_F(DocumentEncoderTest, NobodyWritesTokensOfWordPieces) {
  const auto pieces = *WordPiece::Load("data/word_piece_testdata", /*lowercase=*/true);
  const DocumentEncoder encoder(pieces.get(), {}, LossOn::kAnswers);
  const auto tokens = *Encode(encoder, Answered("the [SEP]", "[SEP] king"));
  EXPECT_EQ(Count(tokens, pieces->special().separator), 0);
}

TEST_F(DocumentEncoderTest, AFormatSaysSpecialTokensThatAreSoughtInNormalText) {
  std::ifstream file("data/hf_testdata/characters/tokenizer.json");
  nlohmann::json changed = nlohmann::json::parse(file);
  for (auto& token : changed["added_tokens"]) token["normalized"] = true;
  HfFiles files;
  files.contents[kTokenizerFile] = changed.dump();
  files.tokenizer = *ParseTokenizerJson(files.contents[kTokenizerFile]);
  const auto tokenizer = *HfTokenizer::Of(std::move(files), Specials::kText);
  const int32_t end =
      (*HfTokenizer::Load("data/hf_testdata/characters", Specials::kIds))->Encode("</s>")->back();
  const DocumentEncoder encoder(tokenizer.get(), KnownChatFormat(ChatKind::kMistral),
                                LossOn::kAnswers);
  const auto tokens = *Encode(encoder, Talk({{"user", "a</s>"}, {"assistant", "the king"}}));
  EXPECT_EQ(Count(tokens, end), 1);
  EXPECT_THAT(Shown(*tokenizer, tokens), HasSubstr("[/INST][ the king</s>]"));
}

TEST_F(DocumentEncoderTest, AConversationIsOneTextForTheTokenizer) {
  const auto ids = HfTokenizer::Load("data/hf_testdata/characters", Specials::kIds);
  ASSERT_TRUE(ids.ok()) << ids.status();
  const DocumentEncoder encoder(characters_.get(), KnownChatFormat(ChatKind::kMistral),
                                LossOn::kAnswers);
  const auto tokens = Encode(encoder, Talk({{"user", "Who?"}, {"assistant", "the king"}}));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const std::vector<int32_t> whole = *(*ids)->Encode("<s>[INST] Who? [/INST] the king</s>");
  ASSERT_EQ(tokens->size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ((*tokens)[i] & ~kLearned, static_cast<uint32_t>(whole[i])) << i;
  }
  EXPECT_THAT(Shown(*characters_, *tokens), HasSubstr("[/INST][ the king</s>]"));
}

TEST_F(DocumentEncoderTest, EveryAnswerOfAConversationIsLearned) {
  const DocumentEncoder encoder(bytes_.get(), KnownChatFormat(ChatKind::kChatml), LossOn::kAnswers);
  EXPECT_EQ(Shown(*bytes_, *Encode(encoder, Talk({{"system", "s"},
                                                  {"assistant", "a"},
                                                  {"user", "\nu"},
                                                  {"assistant", "\nb"}}))),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>assistant\n[a<|im_end|>\n]"
            "<|im_start|>user\n\nu<|im_end|>\n<|im_start|>assistant\n[\nb<|im_end|>\n]");
}

TEST_F(DocumentEncoderTest, AConversationWithoutAFormatIsRefused) {
  const DocumentEncoder encoder(bytes_.get(), {}, LossOn::kAnswers);
  EXPECT_THAT(std::string(Encode(encoder, Talk({{"user", "a"}})).status().message()),
              HasSubstr("has messages: want data.chat"));
}

TEST_F(DocumentEncoderTest, TokenizersWithoutSpecialTokensDoWithout) {
  const Bytes bytes;
  const DocumentEncoder encoder(&bytes, KnownChatFormat(ChatKind::kMistral), LossOn::kAnswers);
  EXPECT_EQ(Shown(bytes, *Encode(encoder, Answered("a", "b"))), "a[b]");
  EXPECT_EQ(Shown(bytes, *Encode(encoder, Talk({{"user", "u"}, {"assistant", "a"}}))),
            "<s>[INST] u [/INST] [a</s>]");
}

TEST_F(DocumentEncoderTest, ManyTogetherAreTheSameAsEachAlone) {
  const DocumentEncoder encoder(bytes_.get(), KnownChatFormat(ChatKind::kZephyr), LossOn::kAnswers);
  std::vector<DocumentEncoder::Written> all;
  for (const char* word : {"the", "king", "the king", "the", "", "theatre"}) {
    all.push_back(*encoder.Write(Talk({{"user", word}, {"assistant", "the king"}})));
    all.push_back(*encoder.Write(Answered("the ", word)));
  }
  const auto together = encoder.Encode(all);
  ASSERT_TRUE(together.ok()) << together.status();
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ((*together)[i], encoder.Encode({all[i]})->front()) << i;
  }
}

TEST_F(DocumentEncoderTest, ManyMessagesTakeNoLongerThanTheirText) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 20'000; ++i) messages.push_back({i % 2 == 0 ? "user" : "assistant", "the"});
  const DocumentEncoder encoder(characters_.get(), KnownChatFormat(ChatKind::kChatml),
                                LossOn::kAnswers);
  const auto tokens = Encode(encoder, Talk(messages));  // else hours
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(Shown(*characters_, *tokens), HasSubstr("assistant\n[the<|im_end|>\n]<|im_start|>"));
}

}  // namespace
}  // namespace thinwire
