#include "data/characters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/unicode.h"

namespace thinwire {
namespace {

// Returns the error of a text whose first byte is the corpus's number `before`.
absl::Status NoUtf8(std::string_view text, size_t at, size_t before = 0) {
  return absl::InvalidArgumentError(absl::StrCat(
      "byte ", before + at, " is 0x", absl::Hex(static_cast<uint8_t>(text[at]), absl::kZeroPad2),
      ", which is not UTF-8; tokens bpe takes any bytes"));
}

}  // namespace

absl::Status Characters::Finder::Take(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.code == kNoCode) return NoUtf8(text, at, bytes_);
    found_.insert(character.code);
    at += character.bytes;
  }
  bytes_ += text.size();
  return absl::OkStatus();
}

absl::Status Characters::Finder::Add(std::string_view piece) {
  rest_ += piece;
  const size_t whole = WholeCharacters(rest_);
  RETURN_IF_ERROR(Take(std::string_view(rest_).substr(0, whole)));
  rest_.erase(0, whole);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Characters>> Characters::Finder::End() {
  RETURN_IF_ERROR(Take(rest_));
  std::vector<uint32_t> codes(found_.begin(), found_.end());
  std::sort(codes.begin(), codes.end());
  return std::unique_ptr<Characters>(new Characters(std::move(codes)));
}

absl::StatusOr<std::unique_ptr<Characters>> Characters::Of(std::string_view corpus) {
  Finder finder;
  RETURN_IF_ERROR(finder.Add(corpus));
  return finder.End();
}

Characters::Characters(std::vector<uint32_t> codes) : codes_(std::move(codes)) {
  std::string all;
  for (const uint32_t code : codes_) all += Utf8(code);
  digest_ = Sha256(all);
}

absl::StatusOr<std::vector<int32_t>> Characters::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.code == kNoCode) return NoUtf8(text, at);
    const auto found = std::lower_bound(codes_.begin(), codes_.end(), character.code);
    if (found == codes_.end() || *found != character.code) {
      return absl::InvalidArgumentError(absl::StrCat("byte ", at, ": \"", Utf8(character.code),
                                                     "\" is none of the ", codes_.size(),
                                                     " characters of the corpus"));
    }
    ids.push_back(static_cast<int32_t>(found - codes_.begin()));
    at += character.bytes;
  }
  return ids;
}

size_t Characters::LastCut(std::string_view text) const {
  const size_t whole = WholeCharacters(text);
  return whole > 0 ? whole - CharacterBefore(text, whole).bytes : 0;
}

void Characters::Append(int32_t id, std::string* text) const { *text += Utf8(codes_[id]); }

}  // namespace thinwire
