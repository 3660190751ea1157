// Sequences of a text's tokens some of which are hidden, and which are to be guessed (Devlin et
// al., 2019).
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/text.h"
#include "data/token_source.h"
#include "data/word_piece.h"

namespace thinwire {

// Returns the number of tokens of a sample of `context` that are hidden: `rate` of those of the
// text, rounded, and at least one.
int64_t HiddenTokens(int64_t context, double rate);

// The data set. A sample is [CLS], `context` - 2 tokens of a text, [SEP]. HiddenTokens of them have
// their id as label, and the others kNoLabel. Of the hidden ones 80 % become [MASK], 10 % any token
// but the special ones, and 10 % stay. Special tokens of the text are hidden only if a sample has
// too few others. All this is a pure function of the sample and Augmentation::mask.
class MaskedText final : public Dataset {
 public:
  // Parameters are those of TextDataset, except that `context` has three or more tokens, of which
  // two are not the text's, and except for `rate`, the share of tokens that are hidden.
  struct Options {
    int64_t vocabulary = 0, context = 0, windows = 0, limit = 0;
    double rate = 0;
    SpecialTokens special;
  };
  MaskedText(TokenRange tokens, const Options& options);

  int64_t size() const override { return text_.size(); }
  int64_t classes() const override { return text_.classes(); }
  Shape sample_shape() const override { return {1, context_}; }
  bool is_text() const override { return true; }
  bool hides_tokens() const override { return true; }
  int64_t labels_per_sample() const override { return context_; }
  void Labels(int64_t sample, const Augmentation& augmentation,
              absl::Span<int32_t> out) const override;
  void LoadTokens(int64_t sample, const Augmentation& augmentation,
                  absl::Span<int32_t> out) const override;
  uint64_t digest() const override { return digest_; }
  absl::Status status() const override { return text_.status(); }
  int64_t places() const override { return text_.places(); }

 private:
  // A hidden position, and the id that is there instead of its own.
  struct Hidden {
    size_t position;
    int32_t shown;
  };

  // Returns the sample as it is in the text.
  std::vector<int32_t> Whole(int64_t sample, const Augmentation& augmentation) const;
  std::vector<Hidden> HiddenIn(const std::vector<int32_t>& ids, int64_t sample,
                               const Augmentation& augmentation) const;

  const TextDataset text_;  // of `context` - 2 tokens
  const int64_t context_;
  const double rate_;
  const SpecialTokens special_;
  std::vector<int32_t> ordinary_;  // ids that are not special
  uint64_t digest_;
};

}  // namespace thinwire
