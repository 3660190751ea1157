// Tokenizer whose tokens are the characters of a corpus, as in nanoGPT's character-level examples.
// Ids are in the order of their code points.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace thinwire {

class Characters final : public Tokenizer {
 public:
  // Takes the characters that occur in `corpus`. InvalidArgument names the first byte that is not
  // UTF-8.
  static absl::StatusOr<std::unique_ptr<Characters>> Of(std::string_view corpus);

  int32_t vocabulary() const override { return static_cast<int32_t>(codes_.size()); }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  const std::string& digest() const override { return digest_; }

 private:
  explicit Characters(std::vector<uint32_t> codes);
  void Append(int32_t id, std::string* text) const override;
  const char* kind() const override { return "the characters there are"; }

  const std::vector<uint32_t> codes_;  // ascending
  std::string digest_;
};

}  // namespace thinwire
