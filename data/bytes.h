// Each byte of a text is a token and its value is the id (Xue et al., TACL 2022): any two texts
// have the same vocabulary, so that what was trained on one may go on with the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace thinwire {

class Bytes final : public Tokenizer {
 public:
  static constexpr int32_t kVocabulary = 256;

  int32_t vocabulary() const override { return kVocabulary; }
  // Never fails.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const override;
  const std::string& digest() const override;
};

}  // namespace thinwire
