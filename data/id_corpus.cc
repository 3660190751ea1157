#include "data/id_corpus.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/file_list.h"
#include "data/id_files.h"
#include "data/masked_ids.h"
#include "data/text.h"
#include "data/token_source.h"

namespace thinwire {
namespace {

// Files of one or two parts: `test` is null where `train` has both.
struct Parts {
  std::shared_ptr<IdFiles> train, test;
};

absl::StatusOr<std::shared_ptr<IdFiles>> OpenAt(const std::string& field, const std::string& path,
                                                IdType type) {
  ASSIGN_OR_RETURN(std::vector<std::string> files, FilesAt(field, path));
  const bool is_one = files.size() == 1;
  if (!is_one) files.erase(std::remove_if(files.begin(), files.end(), IsMask), files.end());
  return IdFiles::Open(files, type);
}

absl::StatusOr<Parts> OpenParts(const TextOptions& text) {
  Parts parts;
  if (text.train.empty()) {
    ASSIGN_OR_RETURN(parts.train, OpenAt("data.file", text.file, text.type));
    return parts;
  }
  ASSIGN_OR_RETURN(parts.train, OpenAt("data.train", text.train, text.type));
  ASSIGN_OR_RETURN(parts.test, OpenAt("data.test", text.test, text.type));
  return parts;
}

absl::StatusOr<TokenRange> IdsAndMasksOf(const std::shared_ptr<const IdFiles>& files,
                                         const TextOptions& text) {
  if (text.loss_on == LossOn::kAll) return TokenRange(files);
  ASSIGN_OR_RETURN(auto masked, WithMasks(files));
  if (text.loss_on == LossOn::kMasks || masked->may_lack_labels()) return TokenRange(masked);
  const std::string first = files->extents()[0].path;
  return absl::InvalidArgumentError(absl::StrCat(first, " has no ", MaskBeside(first),
                                                 " beside it: want one with ",
                                                 "data.loss_on: answers, or data.loss_on: all"));
}

// Returns the tokens with all but their vocabulary.
absl::StatusOr<TextTokens> Divided(const Parts& parts, const TextOptions& text) {
  TextTokens tokens;
  tokens.name = text.train.empty() ? text.file : text.train;
  ASSIGN_OR_RETURN(tokens.train, IdsAndMasksOf(parts.train, text));
  if (parts.test != nullptr) {
    ASSIGN_OR_RETURN(tokens.test, IdsAndMasksOf(parts.test, text));
  } else {
    const double share = static_cast<double>(tokens.train.size()) * text.split;
    tokens.test = tokens.train.TakeFrom(static_cast<int64_t>(share));
  }
  return tokens;
}

absl::StatusOr<int64_t> VocabularyOf(const Parts& parts, const DataOptions& options) {
  if (options.text.tokens != TokenKind::kIds) {
    ASSIGN_OR_RETURN(const auto tokenizer, TokenizerOf(CorpusText(), options));
    return tokenizer->vocabulary();
  }
  if (options.text.size.vocabulary > 0) return options.text.size.vocabulary;
  ASSIGN_OR_RETURN(int64_t greatest, parts.train->GreatestId());
  if (parts.test != nullptr) {
    ASSIGN_OR_RETURN(const int64_t other, parts.test->GreatestId());
    greatest = std::max(greatest, other);
  }
  return greatest + 1;
}

CorpusSize SizeOf(const TextTokens& tokens) {
  return {tokens.vocabulary, tokens.train.size(), tokens.test.size()};
}

}  // namespace

absl::StatusOr<CorpusSize> MeasureIds(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Parts parts, OpenParts(options.text));
  ASSIGN_OR_RETURN(TextTokens tokens, Divided(parts, options.text));
  ASSIGN_OR_RETURN(tokens.vocabulary, VocabularyOf(parts, options));
  return SizeOf(tokens);
}

absl::StatusOr<DataSplits> LoadIds(const DataOptions& options) {
  ASSIGN_OR_RETURN(const Parts parts, OpenParts(options.text));
  ASSIGN_OR_RETURN(TextTokens tokens, Divided(parts, options.text));
  ASSIGN_OR_RETURN(tokens.vocabulary, VocabularyOf(parts, options));
  RETURN_IF_ERROR(CheckPlanned(tokens.name, SizeOf(tokens), options));
  for (const auto& files : {parts.train, parts.test}) {
    if (files != nullptr) files->Restrict(tokens.vocabulary);
  }
  return SplitsOf(std::move(tokens), options);
}

}  // namespace thinwire
