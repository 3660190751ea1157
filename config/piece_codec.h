// Codec of one piece of what replicas exchange (models/pieces.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compress/codec_table.h"
#include "compress/spec.h"
#include "config/replicas_spec.h"
#include "models/pieces.h"

namespace thinwire {

// Returns whether a piece is of the weight `tied` (empty: none) or of its copy.
inline bool IsOfTied(const Piece& piece, const std::string& tied) {
  return absl::StartsWith(piece.name, absl::StrCat(tied, "["));
}

// Returns whether the codec acts on a piece, or the piece goes exactly. Both copies of the weight
// `tied` (empty: none) are encoded, each at its stage, and must decode to the same bits. So they go
// exactly where a codec may send other bits on another device.
inline bool ActsOn(const CodecSpec& codec, const Piece& piece, const std::string& tied) {
  const CodecRow& row = CodecRowOf(codec.kind);
  const bool differs = row.has(CodecRow::kRank) || row.is_plugin;
  return piece.coded && !(differs && IsOfTied(piece, tied));
}

// Returns whether the contributions to a piece are reduced factor by factor (PowerSGD): those
// through low_rank, which only an owner adds up.
inline bool IsFactored(const ReplicasSpec& replicas, const DirectionSpec& contributions,
                       const Piece& piece, const std::string& tied) {
  return replicas.exchange == ReplicaExchange::kReduce &&
         CodecRowOf(contributions.codec.kind).has(CodecRow::kRank) &&
         ActsOn(contributions.codec, piece, tied);
}

// Returns the segment whose entries hold for the piece of that number. Those of the tied weight's
// original, in the first segment, hold for its copy.
inline int SegmentOfEntries(const Piece& piece, uint32_t number, const std::string& tied) {
  return IsOfTied(piece, tied) ? 0 : SegmentOfPiece(number);
}

// Returns how many tensors of the size of a segment's parameters a machine keeps of each replica's
// contributions: of factors the compensated gradient, up to the second one; with feedback its rows,
// and of other codecs the two tensors of the encoders.
inline int CopiesOfReplica(const ReplicasSpec& replicas, int segment) {
  const DirectionSpec& contributions = replicas.ContributionsOf(segment);
  const bool remembers = contributions.feedback.kind != FeedbackKind::kNone;
  const bool has_factors = replicas.exchange == ReplicaExchange::kReduce &&
                           CodecRowOf(contributions.codec.kind).has(CodecRow::kRank);
  return has_factors ? 1 + remembers : 3 * remembers;
}

}  // namespace thinwire
