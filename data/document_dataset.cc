#include "data/document_dataset.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/external_sort.h"
#include "data/token_source.h"

namespace thinwire {
namespace {

constexpr size_t kTokensAtOnce = size_t{1} << 16, kLengthsAtOnce = size_t{1} << 16;
constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();  // no sample's number

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

// Hands on the pieces of documents that have a label.
absl::Status ForEachPiece(const DocumentPart& part, const DocumentDivision& division,
                          const Divider::Take& take) {
  const DocumentStore& store = *part.store;
  TokenReader reader(store);
  const auto take_labelled = [&](const Stretch& piece) -> absl::Status {
    const int64_t last = piece.first + piece.tokens + (piece.goes_on ? 1 : 0);
    ASSIGN_OR_RETURN(const bool is_labelled, reader.AnyLearned(piece.first + 1, last));
    return is_labelled ? take(piece) : absl::OkStatus();
  };
  std::optional<Divider> divider;
  int64_t document = 0, token = 0;
  std::vector<uint32_t> lengths;
  for (; document < part.documents.last; document += static_cast<int64_t>(lengths.size())) {
    // Lengths of what is in front of the part tell where it begins.
    if (document == part.documents.first) divider.emplace(division, token, take_labelled);
    const int64_t end = divider ? part.documents.last : part.documents.first;
    lengths.resize(std::min(kLengthsAtOnce, static_cast<size_t>(end - document)));
    RETURN_IF_ERROR(store.ReadLengths(document, absl::MakeSpan(lengths)));
    for (const uint32_t length : lengths) {
      token += length;
      if (divider) RETURN_IF_ERROR(divider->Add(length));
    }
  }
  return divider ? divider->End() : absl::OkStatus();
}

// Puts pieces into samples by best fit; samples are in the order of their first pieces. Three sorts
// take the place of lists of all pieces.
absl::Status ForEachFitted(const DocumentPart& part, const DocumentDivision& division,
                           const std::string& folder, const SampleIndex::Sink& sink) {
  const int64_t context = division.context;
  ExternalSort longest_first(folder), by_sample(folder), by_begin(folder);
  RETURN_IF_ERROR(ForEachPiece(part, division, [&](const Stretch& piece) {
    return longest_first.Add({static_cast<uint64_t>(context - piece.tokens), WordOf(piece)});
  }));
  BestFit fit(context);
  RETURN_IF_ERROR(longest_first.HandOn([&](const SortRecord& piece) {
    const int64_t sample = fit.Place(StretchOf(piece.value).tokens);
    return by_sample.Add({static_cast<uint64_t>(sample), piece.value});
  }));
  SortRecord begin = {kNone, 0};  // the first piece of the current sample
  RETURN_IF_ERROR(by_sample.HandOn([&](const SortRecord& piece) {
    if (piece.key != begin.key) begin = piece;
    return by_begin.Add({begin.value, piece.value});
  }));
  return by_begin.HandOn([&](const SortRecord& piece) {
    return sink(StretchOf(piece.value), /*begins_sample=*/piece.key == piece.value);
  });
}

// Returns the name of the index, which is for these documents and samples only.
std::string IndexName(const DocumentPart& part, const DocumentSamples& samples) {
  return Sha256(absl::StrCat(part.digest, " ", part.documents.first, " ", part.documents.last, " ",
                             samples.context, " ", Name(samples.packing), " ",
                             Name(samples.too_long)));
}

uint64_t DigestOf(const DocumentPart& part) {
  Digest digest;
  digest.Add(part.digest.data(), part.digest.size());
  for (const int64_t word : {part.documents.first, part.documents.last}) {
    digest.AddWord(static_cast<uint64_t>(word));
  }
  return digest.value();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DocumentDataset>> DocumentDataset::Make(
    const DocumentPart& part, const DocumentSamples& samples) {
  const DocumentDivision division = {samples.context, samples.packing, samples.too_long};
  const auto source = [&](const std::string& folder, const SampleIndex::Sink& sink) {
    if (samples.packing == Packing::kBestFit) return ForEachFitted(part, division, folder, sink);
    return ForEachPiece(part, division, [&sink](const Stretch& piece) {
      return sink(piece, /*begins_sample=*/true);
    });
  };
  ASSIGN_OR_RETURN(auto index, SampleIndex::Open(part.folder, IndexName(part, samples),
                                                 {part.store->tokens(), samples.context}, source));
  return std::unique_ptr<DocumentDataset>(new DocumentDataset(part, samples, std::move(index)));
}

DocumentDataset::DocumentDataset(const DocumentPart& part, const DocumentSamples& samples,
                                 std::shared_ptr<const SampleIndex> index)
    : store_(part.store),
      samples_(samples),
      index_(std::move(index)),
      kept_{0, index_->samples()},
      digest_(DigestOf(part)) {}

void DocumentDataset::Keep(SampleRange range) {
  assert(0 <= range.first && range.first <= range.last && range.last <= size());
  kept_ = {kept_.first + range.first, kept_.first + range.last};
}

std::vector<int64_t> DocumentDataset::DocumentStarts(int64_t sample) const {
  std::vector<int64_t> starts;
  int64_t end = 0;
  for (const Stretch& piece : PiecesOf(sample)) {
    if (end > 0) starts.push_back(end);
    end += piece.tokens;
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

std::vector<Stretch> DocumentDataset::PiecesOf(int64_t sample) const {
  assert(0 <= sample && sample < size());
  absl::StatusOr<std::vector<Stretch>> pieces = index_->Pieces(kept_.first + sample);
  error_.Update(pieces.status());
  return pieces.ok() ? *std::move(pieces) : std::vector<Stretch>();
}

std::vector<DocumentToken> DocumentDataset::Tokens(const Stretch& piece) const {
  std::vector<DocumentToken> tokens(static_cast<size_t>(piece.tokens + (piece.goes_on ? 1 : 0)));
  error_.Update(store_->Read(piece.first, absl::MakeSpan(tokens)));
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
    out.remove_prefix(static_cast<size_t>(piece.tokens));
  }
}

void DocumentDataset::LoadTokens(int64_t sample, const Augmentation& /*augmentation*/,
                                 absl::Span<int32_t> out) const {
  for (const Stretch& piece : PiecesOf(sample)) {
    const std::vector<DocumentToken> tokens = Tokens(piece);
    for (size_t i = 0; i < static_cast<size_t>(piece.tokens); ++i) {
      out[i] = static_cast<int32_t>(tokens[i] & ~kLearned);
    }
    out.remove_prefix(static_cast<size_t>(piece.tokens));
  }
  std::fill(out.begin(), out.end(), samples_.filler);
}

}  // namespace thinwire
