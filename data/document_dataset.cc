#include "data/document_dataset.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/digest.h"
#include "base/status.h"
#include "data/token_source.h"

namespace thinwire {
namespace {

constexpr size_t kTokensAtOnce = size_t{1} << 16;

// Reads a store's tokens in order, in large portions.
class TokenReader {
 public:
  explicit TokenReader(const DocumentStore& store) : store_(store) {}

  // Returns whether one of the tokens [first, last) is to be learned. `first` never decreases.
  absl::StatusOr<bool> AnyLearned(int64_t first, int64_t last) {
    for (; first < last; ++first) {
      if (first < begin_ || first >= begin_ + static_cast<int64_t>(read_.size())) {
        begin_ = first;
        read_.resize(std::min<size_t>(kTokensAtOnce, static_cast<size_t>(store_.tokens() - first)));
        RETURN_IF_ERROR(store_.Read(first, absl::MakeSpan(read_)));
      }
      if ((read_[static_cast<size_t>(first - begin_)] & kLearned) != 0) return true;
    }
    return false;
  }

 private:
  const DocumentStore& store_;
  int64_t begin_ = 0;
  std::vector<DocumentToken> read_;
};

// Removes pieces without a label.
absl::Status DropUnlabelled(const DocumentStore& store, std::vector<Stretch>* pieces) {
  TokenReader reader(store);
  size_t kept = 0;
  for (const Stretch& piece : *pieces) {
    const auto first = static_cast<int64_t>(piece.first);
    const auto last = first + static_cast<int64_t>(piece.tokens + piece.goes_on);
    ASSIGN_OR_RETURN(const bool is_labelled, reader.AnyLearned(first + 1, last));
    if (is_labelled) (*pieces)[kept++] = piece;
  }
  pieces->erase(pieces->begin() + static_cast<int64_t>(kept), pieces->end());
  return absl::OkStatus();
}

// Sorts pieces by their samples, and in a sample as they are, and returns where each begins.
std::vector<uint32_t> SortBySample(const std::vector<uint32_t>& sample_of,
                                   std::vector<Stretch>* pieces) {
  const uint32_t samples =
      sample_of.empty() ? 0 : 1 + *std::max_element(sample_of.begin(), sample_of.end());
  std::vector<uint32_t> begins(samples + 1);
  for (const uint32_t sample : sample_of) ++begins[sample + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
  std::vector<Stretch> sorted(*pieces);
  for (size_t i = 0; i < pieces->size(); ++i) sorted[next[sample_of[i]]++] = (*pieces)[i];
  *pieces = std::move(sorted);
  return begins;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DocumentDataset>> DocumentDataset::Make(
    std::shared_ptr<const DocumentStore> store, SampleRange documents,
    const DocumentSamples& samples, uint64_t digest) {
  const auto lengths = absl::MakeConstSpan(store->lengths());
  const auto first =
      std::accumulate(lengths.begin(), lengths.begin() + documents.first, int64_t{0});
  const auto count = static_cast<size_t>(documents.last - documents.first);
  std::vector<Stretch> pieces =
      Divided(lengths.subspan(static_cast<size_t>(documents.first), count), first, samples.context,
              samples.packing, samples.too_long);
  RETURN_IF_ERROR(DropUnlabelled(*store, &pieces));
  return std::unique_ptr<DocumentDataset>(
      new DocumentDataset(std::move(store), samples, std::move(pieces), digest));
}

DocumentDataset::DocumentDataset(std::shared_ptr<const DocumentStore> store,
                                 const DocumentSamples& samples, std::vector<Stretch> pieces,
                                 uint64_t digest)
    : store_(std::move(store)), samples_(samples), pieces_(std::move(pieces)), digest_(digest) {
  if (samples_.packing == Packing::kBestFit) {
    begins_ = SortBySample(BestFit(pieces_, samples_.context), &pieces_);
  } else {
    begins_.resize(pieces_.size() + 1);
    std::iota(begins_.begin(), begins_.end(), 0);
  }
  kept_ = {0, static_cast<int64_t>(begins_.size()) - 1};
}

void DocumentDataset::Keep(SampleRange range) {
  assert(0 <= range.first && range.first <= range.last && range.last <= size());
  kept_ = {kept_.first + range.first, kept_.first + range.last};
}

std::vector<int64_t> DocumentDataset::DocumentStarts(int64_t sample) const {
  std::vector<int64_t> starts;
  int64_t end = 0;
  for (const Stretch& piece : PiecesOf(sample)) {
    if (end > 0) starts.push_back(end);
    end += static_cast<int64_t>(piece.tokens);
  }
  return starts;
}

uint64_t DocumentDataset::digest() const {
  Digest digest;
  for (const int64_t word :
       {samples_.context, samples_.vocabulary, static_cast<int64_t>(samples_.packing),
        static_cast<int64_t>(samples_.too_long), kept_.first, kept_.last}) {
    digest.AddWord(static_cast<uint64_t>(word));
  }
  digest.AddWord(digest_);
  return digest.value();
}

absl::Span<const Stretch> DocumentDataset::PiecesOf(int64_t sample) const {
  assert(0 <= sample && sample < size());
  const auto at = static_cast<size_t>(kept_.first + sample);
  return absl::MakeConstSpan(pieces_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
}

std::vector<DocumentToken> DocumentDataset::Tokens(const Stretch& piece) const {
  std::vector<DocumentToken> tokens(piece.tokens + piece.goes_on);
  error_.Update(store_->Read(static_cast<int64_t>(piece.first), absl::MakeSpan(tokens)));
  return tokens;
}

void DocumentDataset::Labels(int64_t sample, const Augmentation& /*augmentation*/,
                             absl::Span<int32_t> out) const {
  std::fill(out.begin(), out.end(), kNoLabel);
  for (const Stretch& piece : PiecesOf(sample)) {
    const std::vector<DocumentToken> tokens = Tokens(piece);
    for (size_t i = 1; i < tokens.size(); ++i) {
      if ((tokens[i] & kLearned) != 0) out[i - 1] = static_cast<int32_t>(tokens[i] & ~kLearned);
    }
    out.remove_prefix(piece.tokens);
  }
}

void DocumentDataset::LoadTokens(int64_t sample, const Augmentation& /*augmentation*/,
                                 absl::Span<int32_t> out) const {
  for (const Stretch& piece : PiecesOf(sample)) {
    const std::vector<DocumentToken> tokens = Tokens(piece);
    for (size_t i = 0; i < piece.tokens; ++i) {
      out[i] = static_cast<int32_t>(tokens[i] & ~kLearned);
    }
    out.remove_prefix(piece.tokens);
  }
  std::fill(out.begin(), out.end(), samples_.filler);
}

}  // namespace thinwire
