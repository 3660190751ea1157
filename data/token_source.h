// Token ids one after another, which need not be in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/digest.h"

namespace thinwire {

// The ids. Immutable and thread-safe.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t size() const = 0;
  // Writes the ids from number `first` on to `out`, which must not go beyond size(). Errors name
  // the file that cannot be read, or is not what it was.
  virtual absl::Status Read(int64_t first, absl::Span<int32_t> out) const = 0;
  // Adds `count` ids from number `first` on to the digest, in pieces. Errors of Read.
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
  // As TokenSource::Read; `first` counts from the part's beginning.
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const;
  // Divides off what begins with id number `first`, which may be size(), and returns it.
  TokenRange TakeFrom(int64_t first);
  // Adds all ids to the digest; those in memory at once. Errors of Read.
  absl::Status AddTo(Digest* digest) const;

 private:
  std::shared_ptr<const TokenSource> source_;
  int64_t first_ = 0, size_ = 0;
};

}  // namespace thinwire
