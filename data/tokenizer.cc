#include "data/tokenizer.h"

#include <algorithm>
#include <utility>

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
  std::vector<ByteRange> formats;
  for (const Passage& passage : passages) {
    const size_t begin = whole.size();
    whole += passage.text;
    if (passage.is_format) formats.push_back({begin, whole.size()});
  }
  PassageIds encoded;
  ASSIGN_OR_RETURN(encoded.ids, EncodeNaming(whole, formats));
  const std::vector<size_t> ends = TextEnds(encoded.ids);
  size_t bytes = 0;  // of the text of passages before; ids may have lost some of it
  for (const Passage& passage : passages) {
    encoded.firsts.push_back(FirstBehind(bytes, ends));
    const ByteRange named{0, passage.is_format ? passage.text.size() : 0};
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, EncodeNaming(passage.text, {named}));
    if (!ids.empty()) bytes += TextEnds(ids).back();
  }
  return encoded;
}

absl::StatusOr<std::vector<PassageIds>> Tokenizer::EncodeEach(
    absl::Span<const std::vector<Passage>> texts) const {
  std::vector<PassageIds> all;
  for (const std::vector<Passage>& passages : texts) {
    ASSIGN_OR_RETURN(PassageIds encoded, EncodePassages(passages));
    all.push_back(std::move(encoded));
  }
  return all;
}

std::vector<size_t> Tokenizer::TextEnds(absl::Span<const int32_t> ids) const {
  std::string text;
  std::vector<size_t> ends;
  for (const int32_t id : ids) {
    Append(id, &text);
    ends.push_back(text.size());
  }
  return ends;
}

size_t Tokenizer::FirstBehind(size_t bytes, const std::vector<size_t>& ends) {
  return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), bytes) - ends.begin());
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
