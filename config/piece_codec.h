// Codec of one piece of what replicas exchange (models/pieces.h).
#pragma once

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compress/codec_table.h"
#include "compress/spec.h"
#include "models/pieces.h"

namespace thinwire {

// Returns whether the codec acts on a piece, or the piece goes exactly. Both copies of the weight
// `tied` (empty: none) are encoded, each at its stage, and must decode to the same bits. So they go
// exactly where a codec may send other bits on another device.
inline bool ActsOn(const CodecSpec& codec, const Piece& piece, const std::string& tied) {
  const CodecRow& row = CodecRowOf(codec.kind);
  const bool differs = row.has(CodecRow::kRank) || row.is_plugin;
  return piece.coded && !(differs && absl::StartsWith(piece.name, absl::StrCat(tied, "[")));
}

}  // namespace thinwire
