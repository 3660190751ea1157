// Tokenizer whose tokens are the characters of a corpus, as in nanoGPT's character-level examples.
// Ids are in the order of their code points.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "data/tokenizer.h"

namespace thinwire {

class Characters final : public Tokenizer {
 public:
  // Finds the characters of a corpus that comes in pieces.
  class Finder {
   public:
    // Takes the next piece. InvalidArgument names the first byte of all pieces that is not UTF-8.
    absl::Status Add(std::string_view piece);
    // Returns the tokenizer of the characters that occurred. Errors of Add.
    absl::StatusOr<std::unique_ptr<Characters>> End();

   private:
    absl::Status Take(std::string_view text);

    absl::flat_hash_set<uint32_t> found_;
    std::string rest_;  // of a character whose end has not come
    size_t bytes_ = 0;  // before it
  };

  // Takes the characters that occur in `corpus`. Errors of Finder.
  static absl::StatusOr<std::unique_ptr<Characters>> Of(std::string_view corpus);

  int32_t vocabulary() const override { return static_cast<int32_t>(codes_.size()); }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  bool may_be_cut() const override { return true; }
  // Returns a place between two characters.
  size_t LastCut(std::string_view text) const override;
  const std::string& digest() const override { return digest_; }

 private:
  explicit Characters(std::vector<uint32_t> codes);
  void Append(int32_t id, std::string* text) const override;
  const char* kind() const override { return "the characters there are"; }

  const std::vector<uint32_t> codes_;  // ascending
  std::string digest_;
};

}  // namespace thinwire
