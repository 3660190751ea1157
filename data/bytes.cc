#include "data/bytes.h"

#include "base/sha256.h"

namespace thinwire {

absl::StatusOr<std::vector<int32_t>> Bytes::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

const std::string& Bytes::digest() const {
  static const auto* const digest = new std::string(Sha256("bytes"));
  return *digest;
}

}  // namespace thinwire
