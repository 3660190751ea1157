// Token ids of a text in a file, of any number: they are read where they are asked for.
//
// The file is little-endian: "thinwire tokens\n", the number of ids (u64), their CRC-32C (u32), the
// ids (u32 each).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/kept_file.h"
#include "data/token_source.h"

namespace thinwire {

// The ids.
class TokenFile final : public TokenSource {
 public:
  // Takes one part of the ids after another.
  using Sink = std::function<absl::Status(absl::Span<const int32_t>)>;
  // Hands all ids to the sink.
  using Source = std::function<absl::Status(const Sink&)>;

  // Opens FOLDER/NAME.tokens if that is intact and all its ids are below `vocabulary`. Otherwise it
  // is written with the ids of `source` (OpenOrWrite). Errors of the source and of OpenOrWrite.
  static absl::StatusOr<std::shared_ptr<const TokenFile>> Open(const std::string& folder,
                                                               const std::string& name,
                                                               int32_t vocabulary,
                                                               const Source& source);

  int64_t size() const override { return size_; }
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const override;
  // Gives the digest the value that ids in memory do.
  absl::Status AddTo(int64_t first, int64_t count, Digest* digest) const override;

 private:
  TokenFile(KeptFile file, int64_t size) : file_(std::move(file)), size_(size) {}

  const KeptFile file_;
  const int64_t size_;
};

}  // namespace thinwire
