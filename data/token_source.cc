#include "data/token_source.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

// Number of ids that are read at once for a digest, which depends on it.
constexpr int64_t kPiece = int64_t{1} << 18;

class InMemory final : public TokenSource {
 public:
  explicit InMemory(std::vector<int32_t> ids) : ids_(std::move(ids)) {}

  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const override {
    std::copy_n(ids_.begin() + first, out.size(), out.begin());
    return absl::OkStatus();
  }
  absl::Status AddTo(int64_t first, int64_t count, Digest* digest) const override {
    digest->Add(ids_.data() + first, static_cast<size_t>(count) * sizeof(int32_t));
    return absl::OkStatus();
  }

 private:
  const std::vector<int32_t> ids_;
};

}  // namespace

absl::Status TokenSource::AddTo(int64_t first, int64_t count, Digest* digest) const {
  std::vector<int32_t> piece;
  for (const int64_t end = first + count; first < end; first += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, end - first)));
    RETURN_IF_ERROR(Read(first, absl::MakeSpan(piece)));
    digest->Add(piece.data(), piece.size() * sizeof(int32_t));
  }
  return absl::OkStatus();
}

TokenRange::TokenRange(std::vector<int32_t> ids)
    : TokenRange(std::make_shared<InMemory>(std::move(ids))) {}

TokenRange::TokenRange(std::shared_ptr<const TokenSource> source)
    : source_(std::move(source)), size_(source_->size()) {}

absl::Status TokenRange::Read(int64_t first, absl::Span<int32_t> out) const {
  assert(0 <= first && first + static_cast<int64_t>(out.size()) <= size_);
  return out.empty() ? absl::OkStatus() : source_->Read(first_ + first, out);
}

absl::Status TokenRange::ReadLabels(int64_t first, absl::Span<int32_t> out) const {
  assert(0 <= first && first + static_cast<int64_t>(out.size()) <= size_);
  return out.empty() ? absl::OkStatus() : source_->ReadLabels(first_ + first, out);
}

absl::StatusOr<bool> TokenRange::HasLabels() const {
  if (!may_lack_labels()) return size_ > 1;
  std::vector<int32_t> piece;
  for (int64_t first = 1; first < size_; first += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, size_ - first)));
    RETURN_IF_ERROR(ReadLabels(first, absl::MakeSpan(piece)));
    const auto is_label = [](int32_t label) { return label != kNoLabel; };
    if (std::any_of(piece.begin(), piece.end(), is_label)) return true;
  }
  return false;
}

TokenRange TokenRange::TakeFrom(int64_t first) {
  assert(0 <= first && first <= size_);
  TokenRange taken = *this;
  taken.first_ += first;
  taken.size_ -= first;
  size_ = first;
  return taken;
}

absl::Status TokenRange::AddTo(Digest* digest) const {
  return source_ == nullptr ? absl::OkStatus() : source_->AddTo(first_, size_, digest);
}

}  // namespace thinwire
