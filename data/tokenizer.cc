#include "data/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

absl::StatusOr<std::vector<int32_t>> Tokenizer::EncodeDocuments(
    std::string_view text, absl::Span<const size_t> begins) const {
  if (begins.empty()) return Encode(text);
  std::vector<int32_t> all;
  for (size_t i = 0, begin = 0; i <= begins.size(); ++i) {
    const size_t end = i < begins.size() ? begins[i] : text.size();
    if (i > 0 && end_of_text()) all.push_back(*end_of_text());
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Encode(text.substr(begin, end - begin)));
    all.insert(all.end(), ids.begin(), ids.end());
    begin = end;
  }
  return all;
}

absl::StatusOr<PassageIds> Tokenizer::EncodePassages(absl::Span<const Passage> passages) const {
  std::string whole;
  for (const Passage& passage : passages) whole += passage.text;
  PassageIds encoded;
  ASSIGN_OR_RETURN(encoded.ids, Encode(whole));
  size_t begin = 0;
  for (const Passage& passage : passages) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> before,
                     Encode(std::string_view(whole).substr(0, begin)));
    encoded.firsts.push_back(FirstBehind(before, encoded.ids));
    begin += passage.text.size();
  }
  return encoded;
}

size_t Tokenizer::FirstBehind(absl::Span<const int32_t> before,
                              absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : before) Append(id, &text);
  const size_t end = text.size();
  text.clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    Append(ids[i], &text);
    if (text.size() > end) return i;
  }
  return ids.size();
}

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const int32_t> ids) const {
  absl::StatusOr<std::string> text = Continue(ids);
  if (text.ok() && IsPrefixed(*text)) text->erase(0, 1);
  return text;
}

absl::StatusOr<std::string> Tokenizer::Continue(absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary()) {
      return absl::InvalidArgumentError(
          absl::StrCat("id ", id, ", want 0 to ", vocabulary() - 1, ", ", kind()));
    }
    Append(id, &text);
  }
  return text;
}

}  // namespace thinwire
