#include "data/document_encoder.h"

#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

constexpr Named<LossOn> kLossNames[] = {{LossOn::kAnswers, "answers"}, {LossOn::kAll, "all"}};

DocumentToken TokenOf(int32_t id, bool is_learned) {
  return static_cast<DocumentToken>(id) | (is_learned ? kLearned : 0);
}

}  // namespace

NameTable<LossOn> TableOf(LossOn) { return {"loss_on", kLossNames}; }

// Encodes one passage, or a prompt and the answer.
absl::StatusOr<std::vector<DocumentToken>> DocumentEncoder::EncodeText(
    absl::Span<const Passage> passages) const {
  ASSIGN_OR_RETURN(const PassageIds encoded, tokenizer_.EncodePassages(passages));
  const size_t answer = loss_on_ == LossOn::kAll ? 0 : encoded.firsts.back();
  std::vector<DocumentToken> tokens;
  if (tokenizer_.begin_of_text()) tokens.push_back(TokenOf(*tokenizer_.begin_of_text(), false));
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    tokens.push_back(TokenOf(encoded.ids[i], i >= answer));
  }
  if (tokenizer_.end_of_text()) tokens.push_back(TokenOf(*tokenizer_.end_of_text(), true));
  return tokens;
}

absl::StatusOr<std::vector<DocumentToken>> DocumentEncoder::EncodeChat(
    const std::vector<ChatMessage>& messages) const {
  if (format_.kind == ChatKind::kNone) {
    return absl::InvalidArgumentError(
        "has messages: want data.chat, the format in which they are written");
  }
  ASSIGN_OR_RETURN(const std::vector<ChatPassage> written, WrittenAs(format_, messages));
  std::vector<Passage> passages;
  for (const ChatPassage& passage : written) passages.push_back({passage.text, passage.is_format});
  ASSIGN_OR_RETURN(const PassageIds encoded, tokenizer_.EncodePassages(passages));
  std::vector<DocumentToken> tokens;
  for (size_t i = 0; i < written.size(); ++i) {
    const bool is_last = i + 1 == written.size();
    const size_t end = is_last ? encoded.ids.size() : encoded.firsts[i + 1];
    const bool is_learned = loss_on_ == LossOn::kAll || written[i].is_answer;
    while (tokens.size() < end) tokens.push_back(TokenOf(encoded.ids[tokens.size()], is_learned));
  }
  return tokens;
}

absl::StatusOr<std::vector<DocumentToken>> DocumentEncoder::Encode(const Example& example) const {
  if (example.messages) return EncodeChat(*example.messages);
  if (example.text) return EncodeText({Passage{*example.text}});
  return EncodeText({Passage{*example.prompt}, Passage{*example.completion}});
}

}  // namespace thinwire
