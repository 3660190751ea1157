// Documents as sequences of equally many tokens, of which some are to be learned.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/document_store.h"
#include "data/first_error.h"
#include "data/packing.h"
#include "data/sampler.h"

namespace thinwire {

// How documents become samples.
struct DocumentSamples {
  int64_t context = 0, vocabulary = 0;
  Packing packing = Packing::kNone;
  TooLong too_long = TooLong::kSplit;
  int32_t filler = 0;  // id behind the last token of a sample
};

// The data set. A sample is one piece of a document or several, one behind another, then fillers.
// The label of a token is the next one of its document if that is to be learned, else kNoLabel;
// under Packing::kStream the next one, whosever it is. Every sample has a label. Under
// Packing::kBestFit its pieces do not see one another.
class DocumentDataset final : public Dataset {
 public:
  // `documents` is the range of the store's documents that are divided. Errors of
  // DocumentStore::Read.
  static absl::StatusOr<std::unique_ptr<DocumentDataset>> Make(
      std::shared_ptr<const DocumentStore> store, SampleRange documents,
      const DocumentSamples& samples, uint64_t digest);

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
  DocumentDataset(std::shared_ptr<const DocumentStore> store, const DocumentSamples& samples,
                  std::vector<Stretch> pieces, uint64_t digest);

  // Returns the pieces of a sample.
  absl::Span<const Stretch> PiecesOf(int64_t sample) const;
  // Returns the tokens of a piece, and the one behind where it goes on.
  std::vector<DocumentToken> Tokens(const Stretch& piece) const;

  const std::shared_ptr<const DocumentStore> store_;
  const DocumentSamples samples_;
  std::vector<Stretch> pieces_;   // sample by sample
  std::vector<uint32_t> begins_;  // of each sample's pieces, and their number
  SampleRange kept_;
  const uint64_t digest_;  // of everything but kept_
  mutable FirstError error_;
};

}  // namespace thinwire
