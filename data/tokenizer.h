// Conversion of text to token ids and back. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace thinwire {

// Meaning of <|endoftext|>, which separates documents, in a text.
enum class EndOfText : uint8_t {
  kToken,       // the vocabulary's token of that name
  kCharacters,  // thirteen characters like any others
};

// A tokenizer.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids are in [0, vocabulary).
  virtual int32_t vocabulary() const = 0;
  // Returns the ids of a text. InvalidArgument names the place and the character that has no id.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const = 0;
  // Returns the text of ids; Decode(Encode(text)) is `text`. InvalidArgument names an id outside
  // the vocabulary.
  virtual absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const = 0;
  // Returns the token that separates texts, if the vocabulary has one and texts are read so.
  virtual std::optional<int32_t> end_of_text() const { return std::nullopt; }
  // Returns the SHA-256 of the vocabulary in hexadecimal digits.
  virtual const std::string& digest() const = 0;
};

}  // namespace thinwire
