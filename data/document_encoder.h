// Examples as token ids, each with whether it is to be learned.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/enum_names.h"
#include "data/chat_format.h"
#include "data/example.h"
#include "data/tokenizer.h"

namespace thinwire {

// Tokens of a document that a model learns to predict.
enum class LossOn : uint8_t {
  kAnswers,  // those of a completion and of what the assistant says; of a text all
  kAll,
  kMasks,  // of ids in files: those that masks name; all where there are no masks
};

// Returns the names "answers", "all" and "masks".
NameTable<LossOn> TableOf(LossOn);

// A token of a document: its id, with kLearned if it is to be predicted.
using DocumentToken = uint32_t;
inline constexpr DocumentToken kLearned = uint32_t{1} << 31;

// Encodes examples. Thread-safe.
class DocumentEncoder {
 public:
  // Makes an encoder; `tokenizer` outlives it.
  DocumentEncoder(const Tokenizer* tokenizer, ChatFormat format, LossOn loss_on)
      : tokenizer_(*tokenizer), format_(std::move(format)), loss_on_(loss_on) {}

  // An example as one text.
  struct Written {
    std::vector<ChatPassage> passages;
    bool is_framed = false;  // between the tokens that begin and end texts
  };

  // Writes an example as it is encoded. Errors of WrittenAs; InvalidArgument for a conversation
  // without a format.
  absl::StatusOr<Written> Write(Example example) const;

  // Returns the tokens of each. A text, and a prompt with its completion, begin with the
  // tokenizer's token in front of texts and end with that of their end, if there are any. What a
  // conversation begins and ends with the format says. A token that a prompt and its answer share
  // is the answer's. Many short ones take less time together. Errors of Tokenizer::Encode.
  absl::StatusOr<std::vector<std::vector<DocumentToken>>> Encode(
      absl::Span<const Written> documents) const;

 private:
  std::vector<DocumentToken> TokensOf(const Written& written, const PassageIds& encoded) const;

  const Tokenizer& tokenizer_;
  const ChatFormat format_;
  const LossOn loss_on_;
};

}  // namespace thinwire
