// Sequences of tokens from a text: the text cut into blocks of `context` tokens, each with the
// next tokens for labels, or windows of that many at random places.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/tokenizer.h"

namespace thinwire {

// A text as it was read.
struct CorpusText {
  std::string name;  // for messages: a file's path, or what it is
  std::string train, test;
  std::string folder;     // where its tokens may be kept; empty: nowhere
  bool had_mark = false;  // a byte order mark stood at its head, which is none of its characters
};

class TextDataset final : public Dataset {
 public:
  // `windows`: samples at places that augmentation says; 0: the tokens in blocks. `limit`: only the
  // first samples; 0: all. There are more tokens than `context`, and as many samples as `limit`.
  TextDataset(std::vector<int32_t> tokens, int64_t vocabulary, int64_t context, int64_t windows,
              int64_t limit);

  int64_t size() const override { return size_; }
  int64_t classes() const override { return vocabulary_; }
  Shape sample_shape() const override { return {1, context_}; }
  bool is_text() const override { return true; }
  int64_t labels_per_sample() const override { return context_; }
  void Labels(int64_t sample, const Augmentation& augmentation,
              absl::Span<int32_t> out) const override;
  void LoadTokens(int64_t sample, const Augmentation& augmentation,
                  absl::Span<int32_t> out) const override;
  uint64_t digest() const override { return digest_; }
  int64_t places() const override { return windows_ > 0 ? Tokens() - context_ : 0; }

 private:
  int64_t Tokens() const { return static_cast<int64_t>(tokens_.size()); }
  // `context` tokens of the sample, from `offset` behind its first.
  void Copy(int64_t sample, const Augmentation& augmentation, int64_t offset,
            absl::Span<int32_t> out) const;

  const std::vector<int32_t> tokens_;
  const int64_t vocabulary_, context_, windows_;
  int64_t size_;
  uint64_t digest_;
};

// What the parts of a text are called in messages.
std::string TrainingText(const std::string& name, const DataOptions& options);
std::string TestText(const std::string& name, const DataOptions& options);

// Samples in a text of so many tokens. InvalidArgument, naming the text by `what`, if there is
// none.
absl::StatusOr<int64_t> SamplesOf(const std::string& what, int64_t tokens, int64_t context);

// The tokenizer that options.text asks for. Errors as of Bpe::Load and Characters::Of.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const CorpusText& text,
                                                       const DataOptions& options);

// The same for the text as it was planned: of the size in options.text.size, or any if that is of
// vocabulary 0. InvalidArgument names both sizes otherwise.
absl::StatusOr<std::unique_ptr<Tokenizer>> PlannedTokenizer(const CorpusText& text,
                                                            const DataOptions& options);

absl::StatusOr<CorpusSize> SizeOf(const CorpusText& text, const DataOptions& options);

// Errors: see LoadData.
absl::StatusOr<DataSplits> LoadText(const CorpusText& text, const DataOptions& options);

// The file options.text.file. The first options.text.split of its characters, rounded down, are for
// training; a byte that is no UTF-8 counts as one, and a byte order mark at its head as none.
// NotFound names the file; InvalidArgument one that is empty, or larger than 2 GiB; DataLoss one
// that only stands in the place of a text (base/stand_in.h).
absl::StatusOr<CorpusText> ReadTextFile(const DataOptions& options);

}  // namespace thinwire
