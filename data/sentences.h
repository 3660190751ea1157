// Sentences, or pairs of them, that have a class or a score each, as sequences of equally many
// tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/word_piece.h"

namespace thinwire {

// Tokens of a sentence and of a second one, if there are pairs, and their label.
struct Sentences {
  std::vector<int32_t> first, second;
  int32_t label = 0;
};

// Returns [CLS] first [SEP] or [CLS] first [SEP] second [SEP], filled up to `context` with [PAD].
// Sentences that are too long lose tokens at their end; of a pair the longer one does, as in
// Hugging Face's `longest_first`. `context` has room for the special tokens (SpecialIn).
std::vector<int32_t> Framed(const Sentences& sentences, bool is_pair, int64_t context,
                            const SpecialTokens& special);

// Returns the number of special tokens around a sentence, or a pair.
constexpr int64_t SpecialIn(bool is_pair) { return is_pair ? 3 : 2; }

// The data set.
class SentenceDataset final : public Dataset {
 public:
  // `ids` are those of all samples, `context` each, and `labels` their labels (Dataset::Labels).
  SentenceDataset(std::vector<int32_t> ids, std::vector<int32_t> labels, int64_t context,
                  int64_t classes);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t classes() const override { return classes_; }
  Shape sample_shape() const override { return {1, context_}; }
  bool is_text() const override { return true; }
  void Labels(int64_t sample, const Augmentation& augmentation,
              absl::Span<int32_t> out) const override;
  void LoadTokens(int64_t sample, const Augmentation& augmentation,
                  absl::Span<int32_t> out) const override;
  uint64_t digest() const override { return digest_; }

 private:
  const std::vector<int32_t> ids_, labels_;
  const int64_t context_, classes_;
  uint64_t digest_;
};

}  // namespace thinwire
