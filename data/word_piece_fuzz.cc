// Reads any bytes as a vocabulary of word pieces followed by a text; a zero byte separates them.
// They must be refused, or make a tokenizer that encodes every text, alike when it is cut at a
// space.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "data/word_piece.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  if (end == all.npos) return 0;
  const std::string_view text = all.substr(end + 1);
  const auto tokenizer =
      thinwire::WordPiece::Parse(std::string(all.substr(0, end)), /*lowercase=*/size % 2 == 0);
  if (!tokenizer.ok()) return 0;
  const auto ids = (*tokenizer)->Encode(text);
  if (!ids.ok() || !(*tokenizer)->Decode(*ids).ok()) std::abort();
  const size_t space = text.find(' ');
  if (space == text.npos) return 0;
  auto joined = *(*tokenizer)->Encode(text.substr(0, space));
  const auto rest = *(*tokenizer)->Encode(text.substr(space));
  joined.insert(joined.end(), rest.begin(), rest.end());
  if (joined != *ids) std::abort();
  return 0;
}
