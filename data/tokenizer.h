// Conversion of text to token ids and back. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/text_cut.h"

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

// A stretch of a document.
struct Passage {
  std::string_view text;
  // Written by a format and not by people: tokens that it names are these, whatever Specials says.
  bool is_format = false;
};

// A range [begin, end) of a text's bytes.
struct ByteRange {
  size_t begin, end;
};

// Ids of passages one behind another.
struct PassageIds {
  std::vector<int32_t> ids;
  // For each passage the number of the first id that has a character of it, or of a later one.
  std::vector<size_t> firsts;
};

// A tokenizer.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids are in [0, vocabulary).
  virtual int32_t vocabulary() const = 0;
  // Returns the ids of a text. InvalidArgument names the place and the character that has no id.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const = 0;
  // Returns the ids of documents, with the token that separates texts between them, if there is
  // one. `begins` are the places in `text`, in ascending order, where another document begins.
  // Errors of Encode.
  absl::StatusOr<std::vector<int32_t>> EncodeDocuments(std::string_view text,
                                                       absl::Span<const size_t> begins) const;
  // Returns the ids of several texts, each of which is passages one behind another. The names of
  // tokens, such as <|endoftext|>, are these where Passage says so. Many short texts take less time
  // together. Errors of Encode.
  virtual absl::StatusOr<std::vector<PassageIds>> EncodeEach(
      absl::Span<const std::vector<Passage>> texts) const;
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
  // Returns whether a text may be encoded in pieces, one behind another, with the ids of the whole.
  virtual bool may_be_cut() const { return false; }
  // Returns the last place, behind the first byte, where that may divide a text which begins so,
  // however it goes on; 0 if there is none. Requires may_be_cut().
  virtual size_t LastCut(std::string_view text) const { return LastLineEnd(text); }
  // Returns the ids of what is behind such a place. Errors of Encode.
  virtual absl::StatusOr<std::vector<int32_t>> EncodeRest(std::string_view text) const {
    return Encode(text);
  }
  // Returns the SHA-256 of the vocabulary in hexadecimal digits.
  virtual const std::string& digest() const = 0;

 protected:
  // Returns, for each of the ids, the length of the text of all up to it.
  std::vector<size_t> TextEnds(absl::Span<const int32_t> ids) const;
  // Returns the number of the first id that has a character behind so many bytes of their text.
  static size_t FirstBehind(size_t bytes, const std::vector<size_t>& ends);

 private:
  absl::StatusOr<PassageIds> EncodePassages(absl::Span<const Passage> passages) const;
  // Does what Encode does, but tokens are named only within ranges, which are in ascending order.
  virtual absl::StatusOr<std::vector<int32_t>> EncodeNaming(
      std::string_view text, absl::Span<const ByteRange> /*named*/) const {
    return Encode(text);
  }
  // Adds what `id` stands for to the text of the ids before it; `id` is in the vocabulary.
  virtual void Append(int32_t id, std::string* text) const = 0;
  // Returns whether Encode put a space in front of `text`, which is what ids stand for.
  virtual bool IsPrefixed(const std::string& /*text*/) const { return false; }
  // Returns what the ids are, for errors.
  virtual const char* kind() const { return "the vocabulary"; }
};

}  // namespace thinwire
