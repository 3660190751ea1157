#include "data/tokenizer.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

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
