#include "data/added_tokens.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "data/unicode.h"

namespace thinwire {
namespace {

// Returns the beginning of the white space at the end of text[0, end).
size_t SpaceBegin(std::string_view text, size_t end) {
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
    const Character character = CharacterAt(text, begin);
    if (character.kind != CharacterClass::kSpace || begin + character.bytes != end) break;
    end = begin;
  }
  return end;
}

size_t SpaceEnd(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Character character = CharacterAt(text, at);
    if (character.kind != CharacterClass::kSpace) break;
    at += character.bytes;
  }
  return at;
}

}  // namespace

void AddedTokens::Add(const AddedToken& token, std::string_view spelling) {
  assert(!spelling.empty());
  int32_t node = 0;
  for (const char byte : spelling) {
    const auto added = children_.try_emplace({node, byte}, static_cast<int32_t>(ends_.size()));
    if (added.second) ends_.push_back(-1);
    node = added.first->second;
  }
  begins_[static_cast<uint8_t>(spelling[0])] = true;
  if (ends_[node] >= 0) return;
  ends_[node] = static_cast<int32_t>(tokens_.size());
  const bool stays_text = token.is_special && specials_ == Specials::kText;
  tokens_.push_back({token.id, token.takes_left, token.takes_right, stays_text});
  if (!stays_text) finds_any_ = true;
}

int32_t AddedTokens::Child(int32_t node, char byte) const {
  const auto found = children_.find({node, byte});
  return found == children_.end() ? -1 : found->second;
}

AddedTokens::Match AddedTokens::Find(std::string_view text, size_t at) const {
  for (; at < text.size(); ++at) {
    if (!begins_[static_cast<uint8_t>(text[at])]) continue;
    Match match = {at, at, nullptr};
    int32_t node = 0;
    for (size_t end = at; end < text.size(); ++end) {
      node = Child(node, text[end]);
      if (node < 0) break;
      if (ends_[node] >= 0) match = {at, end + 1, &tokens_[ends_[node]]};
    }
    if (match.token != nullptr) return match;
  }
  return {at, at, nullptr};
}

std::vector<AddedTokens::Part> AddedTokens::Split(std::string_view text,
                                                  absl::Span<const ByteRange> formats) const {
  std::vector<Part> parts;
  size_t done = 0;
  const auto add_text = [&](size_t end) {
    if (end > done) parts.push_back({text.substr(done, end - done), kNoToken});
  };
  const bool finds_any = finds_any_ || !formats.empty();
  for (size_t at = 0; finds_any && at < text.size();) {
    const Match match = Find(text, at);
    if (match.token == nullptr) break;
    while (!formats.empty() && formats[0].end < match.end) formats.remove_prefix(1);
    const bool is_format = !formats.empty() && formats[0].begin <= match.begin;
    at = match.end;
    if (match.token->stays_text && !is_format) {
      // A token that a text and the format behind it spell together hides none of the format's own.
      if (!formats.empty() && formats[0].begin < match.end) at = match.begin + 1;
      continue;
    }
    size_t begin = match.begin, end = match.end;
    if (match.token->takes_left) begin = std::max(SpaceBegin(text, begin), done);
    if (match.token->takes_right) end = SpaceEnd(text, end);
    add_text(begin);
    parts.push_back({text.substr(begin, end - begin), match.token->id});
    done = std::max(done, end);
  }
  add_text(text.size());
  return parts;
}

}  // namespace thinwire
