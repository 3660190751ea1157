// Tokenizer whose tokens are bytes, with the byte's value as id (Xue et al., TACL 2022). All texts
// have the same vocabulary, so a model trained on one can be trained on another.
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
  bool may_be_cut() const override { return true; }
  const std::string& digest() const override;

 private:
  void Append(int32_t id, std::string* text) const override { *text += static_cast<char>(id); }
  const char* kind() const override { return "a byte"; }
};

}  // namespace thinwire
