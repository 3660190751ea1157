// Sequences of tokens from a text: either blocks of `context` tokens, or windows of that many
// tokens at random places. The labels are the next tokens, as far as these are to be learned.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/first_error.h"
#include "data/token_source.h"
#include "data/tokenizer.h"
#include "data/word_piece.h"

namespace thinwire {

// A text as it was read.
struct CorpusText {
  std::string name;  // for messages: the path of a file, or a description
  std::string train, test;
  std::string folder;  // folder where its tokens may be cached; empty: none
  // Places in either part where another file began.
  std::vector<size_t> train_begins, test_begins;
  // True if it began with a byte order mark, which is not one of its characters.
  bool had_mark = false;
};

// The data set.
class TextDataset final : public Dataset {
 public:
  // `windows` is the number of samples whose places come from augmentation; 0: the tokens in
  // blocks. `limit` keeps only the first samples; 0: all. There must be more tokens than `context`,
  // and at least `limit` samples. Reads all tokens; status() has the error if that failed.
  TextDataset(TokenRange tokens, int64_t vocabulary, int64_t context, int64_t windows,
              int64_t limit);

  int64_t size() const override { return size_; }
  int64_t classes() const override { return vocabulary_; }
  Shape sample_shape() const override { return {1, context_}; }
  bool is_text() const override { return true; }
  bool may_lack_labels() const override { return tokens_.may_lack_labels(); }
  int64_t labels_per_sample() const override { return context_; }
  void Labels(int64_t sample, const Augmentation& augmentation,
              absl::Span<int32_t> out) const override;
  void LoadTokens(int64_t sample, const Augmentation& augmentation,
                  absl::Span<int32_t> out) const override;
  uint64_t digest() const override { return digest_; }
  absl::Status status() const override { return error_.Get(); }
  int64_t places() const override { return windows_ > 0 ? tokens_.size() - context_ : 0; }

 private:
  // Returns the number of the sample's first token.
  int64_t FirstOf(int64_t sample, const Augmentation& augmentation) const;

  const TokenRange tokens_;
  mutable FirstError error_;
  const int64_t vocabulary_, context_, windows_;
  int64_t size_;
  uint64_t digest_;
};

// Return the names of a text's parts for messages.
std::string TrainingText(const std::string& name, const DataOptions& options);
std::string TestText(const std::string& name, const DataOptions& options);

// Checks that hidden tokens have a token [MASK] and room in a sample, and that `mask_rate` is more
// than 0 and less than 1.
absl::Status CheckObjective(const TextOptions& text);

// Returns the number of samples in a text of `tokens`. InvalidArgument, naming the text by `what`,
// if there is none.
absl::StatusOr<int64_t> SamplesOf(const std::string& what, int64_t tokens, const TextOptions& text);

// Returns the tokenizer that options.text asks for. Errors of Bpe::Load, WordPiece::Load,
// HfTokenizer::Load and Characters::Of.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const CorpusText& text,
                                                       const DataOptions& options);

// Returns the tokenizer of the text as it was planned: with the size in options.text.size, or with
// any size if that has vocabulary 0. Otherwise InvalidArgument names both sizes.
absl::StatusOr<std::unique_ptr<Tokenizer>> PlannedTokenizer(const CorpusText& text,
                                                            const DataOptions& options);

absl::StatusOr<CorpusSize> SizeOf(const CorpusText& text, const DataOptions& options);

// Tokens of a text, and what is known of their vocabulary.
struct TextTokens {
  std::string name;  // of the text, for messages
  TokenRange train, test;
  int64_t vocabulary = 0;
  SpecialTokens special;  // of word pieces
};

// Makes the data sets of these tokens; those held out are the last ones for training. Errors: see
// LoadData.
absl::StatusOr<DataSplits> SplitsOf(TextTokens tokens, const DataOptions& options);

// Returns InvalidArgument, naming the text and both sizes, unless options.text.size has vocabulary
// 0 or is `size`.
absl::Status CheckPlanned(const std::string& name, const CorpusSize& size,
                          const DataOptions& options);

// Makes the data sets of a text. Errors: see LoadData.
absl::StatusOr<DataSplits> LoadText(const CorpusText& text, const DataOptions& options);

// Returns DataLoss if `content`, a file or its first piece, only stands in for a text
// (base/stand_in.h). A corpus of HTML pages is a text.
absl::Status CheckIsText(const std::string& path, std::string_view content);

// Reads the files of options.text.file, each a document (FilesAt, ReadUnpacked). The first
// options.text.split of their characters, rounded down, are for training. Or reads those of
// options.text.train and options.text.test, if these are not empty. A byte that is not UTF-8 counts
// as a character, a byte order mark at a file's beginning does not. NotFound names the path;
// InvalidArgument files that are empty or larger than 2 GiB together; DataLoss one that only stands
// in for a text (base/stand_in.h).
absl::StatusOr<CorpusText> ReadTextFile(const DataOptions& options);

}  // namespace thinwire
