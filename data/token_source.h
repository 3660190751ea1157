// Token ids one after another, which need not be in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/digest.h"

namespace thinwire {

// Label of a position where nothing is to be learned.
inline constexpr int32_t kNoLabel = -1;

// The ids. Immutable and thread-safe.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t size() const = 0;
  // Writes the ids from number `first` on to `out`, which must not go beyond size(). Errors name
  // the file that cannot be read, or is not what it was.
  virtual absl::Status Read(int64_t first, absl::Span<int32_t> out) const = 0;
  // Does the same, but ids that are not to be learned become kNoLabel.
  virtual absl::Status ReadLabels(int64_t first, absl::Span<int32_t> out) const {
    return Read(first, out);
  }
  // Returns whether there may be such ids.
  virtual bool may_lack_labels() const { return false; }
  // Adds `count` ids from number `first` on to the digest, in pieces, and which of them are to be
  // learned. Errors of Read.
  virtual absl::Status AddTo(int64_t first, int64_t count, Digest* digest) const;
};

// A part of a source, or all of it.
class TokenRange {
 public:
  TokenRange() = default;
  // The ids themselves, in memory.
  TokenRange(std::vector<int32_t> ids);  // NOLINT: a vector is a range
  explicit TokenRange(std::shared_ptr<const TokenSource> source);

  int64_t size() const { return size_; }
  // As in TokenSource; `first` counts from the part's beginning.
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const;
  absl::Status ReadLabels(int64_t first, absl::Span<int32_t> out) const;
  bool may_lack_labels() const { return source_ != nullptr && source_->may_lack_labels(); }
  // Returns whether any id behind the first one is to be learned. Errors of Read.
  absl::StatusOr<bool> HasLabels() const;
  // Divides off what begins with id number `first`, which may be size(), and returns it.
  TokenRange TakeFrom(int64_t first);
  // Adds all ids to the digest; those in memory at once. Errors of Read.
  absl::Status AddTo(Digest* digest) const;

 private:
  std::shared_ptr<const TokenSource> source_;
  int64_t first_ = 0, size_ = 0;
};

}  // namespace thinwire
