#include "data/bytes.h"

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace thinwire {

absl::StatusOr<std::vector<int32_t>> Bytes::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

absl::StatusOr<std::string> Bytes::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const int32_t id : ids) {
    if (id < 0 || id >= kVocabulary) {
      return absl::InvalidArgumentError(
          absl::StrCat("id ", id, ", want 0 to ", kVocabulary - 1, ", a byte"));
    }
    text.push_back(static_cast<char>(id));
  }
  return text;
}

const std::string& Bytes::digest() const {
  static const auto* const digest = new std::string(Sha256("bytes"));
  return *digest;
}

}  // namespace thinwire
