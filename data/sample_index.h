// Which stretches of tokens make which sample, in a file, for any number of samples.
//
// The file is little-endian: "thinwire packs1\n"; the number of samples (u64), that of pieces
// (u64); the CRC-32C of the pieces (u32), that of the begins (u32); the pieces, sample by sample,
// as WordOf writes them (u64 each); the begins, which are left out where each sample has one piece:
// for each sample the number of pieces before it, and that of all (u64 each).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/kept_file.h"
#include "data/packing.h"

namespace thinwire {

// The index. Immutable and thread-safe.
class SampleIndex {
 public:
  // Takes the pieces of one sample after another.
  using Sink = std::function<absl::Status(const Stretch& piece, bool begins_sample)>;
  // Hands all pieces to the sink. What it sets aside belongs into the folder.
  using Source = std::function<absl::Status(const std::string& folder, const Sink&)>;

  // What samples may be made of.
  struct Bounds {
    int64_t tokens = 0;   // that there are
    int64_t context = 0;  // most tokens of a sample
  };

  // Opens FOLDER/NAME.packs if that is intact and within the bounds. Otherwise it is written with
  // the pieces of `source` (OpenOrWrite). Errors of the source and of OpenOrWrite.
  static absl::StatusOr<std::shared_ptr<const SampleIndex>> Open(const std::string& folder,
                                                                 const std::string& name,
                                                                 const Bounds& bounds,
                                                                 const Source& source);

  int64_t samples() const { return samples_; }
  // Returns the pieces of a sample. An error names the file.
  absl::StatusOr<std::vector<Stretch>> Pieces(int64_t sample) const;

 private:
  SampleIndex(KeptFile file, int64_t samples, int64_t pieces)
      : file_(std::move(file)), samples_(samples), pieces_(pieces) {}

  const KeptFile file_;
  const int64_t samples_, pieces_;
};

}  // namespace thinwire
