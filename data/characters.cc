#include "data/characters.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "data/unicode.h"

namespace thinwire {
namespace {

absl::Status NoUtf8(std::string_view text, size_t at) {
  return absl::InvalidArgumentError(absl::StrCat(
      "byte ", at, " is 0x", absl::Hex(static_cast<uint8_t>(text[at]), absl::kZeroPad2),
      ", which is not UTF-8; tokens bpe takes any bytes"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Characters>> Characters::Of(std::string_view corpus) {
  absl::flat_hash_set<uint32_t> found;
  for (size_t at = 0; at < corpus.size();) {
    const Character character = CharacterAt(corpus, at);
    if (character.code == kNoCode) return NoUtf8(corpus, at);
    found.insert(character.code);
    at += character.bytes;
  }
  std::vector<uint32_t> codes(found.begin(), found.end());
  std::sort(codes.begin(), codes.end());
  return std::unique_ptr<Characters>(new Characters(std::move(codes)));
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

void Characters::Append(int32_t id, std::string* text) const { *text += Utf8(codes_[id]); }

}  // namespace thinwire
