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

// Meaning of a special token's spelling in a text.
enum class Specials : uint8_t {
  kText,  // characters like any others, so that no text can say what stands for its end
  kIds,   // the token
};

// A tokenizer.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids are in [0, vocabulary).
  virtual int32_t vocabulary() const = 0;
  // Returns the ids of a text. InvalidArgument names the place and the character that has no id.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const = 0;
  // Returns the text of ids; Decode(Encode(text)) is `text` unless the tokenizer loses characters.
  // InvalidArgument names an id outside the vocabulary.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const;
  // Returns what ids add to a text that has begun. Errors of Decode.
  absl::StatusOr<std::string> Continue(absl::Span<const int32_t> ids) const;
  // Returns the token that stands in front of texts, if models expect one. Encode adds none.
  virtual std::optional<int32_t> begin_of_text() const { return std::nullopt; }
  // Returns the token that separates texts, if the vocabulary has one and texts are read so.
  virtual std::optional<int32_t> end_of_text() const { return std::nullopt; }
  // Returns all tokens after which a text is at its end, first end_of_text() if there is one.
  virtual std::vector<int32_t> ends_of_text() const {
    return end_of_text() ? std::vector<int32_t>{*end_of_text()} : std::vector<int32_t>();
  }
  // Returns the SHA-256 of the vocabulary in hexadecimal digits.
  virtual const std::string& digest() const = 0;

 private:
  // Adds what `id` stands for to the text of the ids before it; `id` is in the vocabulary.
  virtual void Append(int32_t id, std::string* text) const = 0;
  // Returns whether Encode put a space in front of `text`, which is what ids stand for.
  virtual bool IsPrefixed(const std::string& /*text*/) const { return false; }
  // Returns what the ids are, for errors.
  virtual const char* kind() const { return "the vocabulary"; }
};

}  // namespace thinwire
