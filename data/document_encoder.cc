#include "data/document_encoder.h"

#include <string>
#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

constexpr Named<LossOn> kLossNames[] = {
    {LossOn::kAnswers, "answers"}, {LossOn::kAll, "all"}, {LossOn::kMasks, "masks"}};

DocumentToken TokenOf(int32_t id, bool is_learned) {
  return static_cast<DocumentToken>(id) | (is_learned ? kLearned : 0);
}

}  // namespace

NameTable<LossOn> TableOf(LossOn) { return {"loss_on", kLossNames}; }

absl::StatusOr<DocumentEncoder::Written> DocumentEncoder::Write(Example example) const {
  Written written;
  if (!example.messages) {
    written.is_framed = true;
    if (example.prompt) written.passages.push_back({*std::move(example.prompt), false, false});
    std::string& answer = example.text ? *example.text : *example.completion;
    written.passages.push_back({std::move(answer), false, true});
    return written;
  }
  if (format_.kind == ChatKind::kNone) {
    return absl::InvalidArgumentError(
        "has messages: want data.chat, the format in which they are written");
  }
  ASSIGN_OR_RETURN(written.passages, WrittenAs(format_, *example.messages));
  return written;
}

std::vector<DocumentToken> DocumentEncoder::TokensOf(const Written& written,
                                                     const PassageIds& encoded) const {
  std::vector<DocumentToken> tokens;
  const auto begin = tokenizer_.begin_of_text(), end = tokenizer_.end_of_text();
  if (written.is_framed && begin) tokens.push_back(TokenOf(*begin, false));
  size_t at = 0;
  for (size_t i = 0; i < written.passages.size(); ++i) {
    const bool is_last = i + 1 == written.passages.size();
    const size_t until = is_last ? encoded.ids.size() : encoded.firsts[i + 1];
    const bool is_learned = loss_on_ == LossOn::kAll || written.passages[i].is_answer;
    for (; at < until; ++at) tokens.push_back(TokenOf(encoded.ids[at], is_learned));
  }
  if (written.is_framed && end) tokens.push_back(TokenOf(*end, true));
  return tokens;
}

absl::StatusOr<std::vector<std::vector<DocumentToken>>> DocumentEncoder::Encode(
    absl::Span<const Written> documents) const {
  std::vector<std::vector<Passage>> texts(documents.size());
  for (size_t i = 0; i < documents.size(); ++i) {
    for (const ChatPassage& passage : documents[i].passages) {
      texts[i].push_back({passage.text, passage.is_format});
    }
  }
  ASSIGN_OR_RETURN(const std::vector<PassageIds> encoded, tokenizer_.EncodeEach(texts));
  std::vector<std::vector<DocumentToken>> tokens;
  for (size_t i = 0; i < documents.size(); ++i) {
    tokens.push_back(TokensOf(documents[i], encoded[i]));
  }
  return tokens;
}

}  // namespace thinwire
