// Text as token ids, and back. Immutable: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace thinwire {

// What the words <|endoftext|>, which stand between documents, are in a text.
enum class EndOfText : uint8_t {
  kToken,       // the vocabulary's token of that name
  kCharacters,  // thirteen characters like any others
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids are in [0, vocabulary).
  virtual int32_t vocabulary() const = 0;
  // InvalidArgument naming place and character that have no id.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const = 0;
  // InvalidArgument naming an id outside the vocabulary. Decode(Encode(text)) is `text`.
  virtual absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const = 0;
  // The token that stands between texts, where the vocabulary has one and texts are read so.
  virtual std::optional<int32_t> end_of_text() const { return std::nullopt; }
  // Names the vocabulary: SHA-256 in hexadecimal digits.
  virtual const std::string& digest() const = 0;
};

}  // namespace thinwire
