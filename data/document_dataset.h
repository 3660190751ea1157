// Documents as sequences of equally many tokens, of which some are to be learned.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/document_store.h"
#include "data/first_error.h"
#include "data/packing.h"
#include "data/sample_index.h"
#include "data/sampler.h"

namespace thinwire {

// How documents become samples.
struct DocumentSamples {
  int64_t context = 0, vocabulary = 0;
  Packing packing = Packing::kNone;
  TooLong too_long = TooLong::kSplit;
  int32_t filler = 0;  // id behind the last token of a sample
};

// Documents of a store.
struct DocumentPart {
  std::shared_ptr<const DocumentStore> store;
  SampleRange documents;
  std::string folder;  // for an index of the samples
  std::string digest;  // of the store's documents
};

// The data set. A sample is one piece of a document or several, one behind another, then fillers.
// The label of a token is the next one of its document if that is to be learned, else kNoLabel;
// under Packing::kStream the next one, whosever it is. Every sample has a label. Under
// Packing::kBestFit its pieces do not see one another. No document and no list of samples stays in
// memory.
class DocumentDataset final : public Dataset {
 public:
  // Divides the documents, unless that was done before. Errors of DocumentStore and SampleIndex.
  static absl::StatusOr<std::unique_ptr<DocumentDataset>> Make(const DocumentPart& part,
                                                               const DocumentSamples& samples);

  // Keeps the samples of a range only.
  void Keep(SampleRange range);

  int64_t size() const override { return kept_.last - kept_.first; }
  int64_t classes() const override { return samples_.vocabulary; }
  Shape sample_shape() const override { return {1, samples_.context}; }
  bool is_text() const override { return true; }
  bool may_lack_labels() const override { return true; }
  int64_t labels_per_sample() const override { return samples_.context; }
  void Labels(int64_t sample, const Augmentation& augmentation,
              absl::Span<int32_t> out) const override;
  void LoadTokens(int64_t sample, const Augmentation& augmentation,
                  absl::Span<int32_t> out) const override;
  std::vector<int64_t> DocumentStarts(int64_t sample) const override;
  uint64_t digest() const override;
  absl::Status status() const override { return error_.Get(); }

 private:
  DocumentDataset(const DocumentPart& part, const DocumentSamples& samples,
                  std::shared_ptr<const SampleIndex> index);

  // Returns the pieces of a sample; none after an error.
  std::vector<Stretch> PiecesOf(int64_t sample) const;
  // Returns the tokens of a piece, and the one behind where it goes on.
  std::vector<DocumentToken> Tokens(const Stretch& piece) const;

  const std::shared_ptr<const DocumentStore> store_;
  const DocumentSamples samples_;
  const std::shared_ptr<const SampleIndex> index_;
  SampleRange kept_;
  uint64_t digest_;  // of the documents
  mutable FirstError error_;
};

}  // namespace thinwire
