// Pieces of a stage's parameters, in which replicas exchange their gradients, with their owners.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/specs.h"
#include "models/pieces.h"

namespace thinwire {

// A piece with its number in the model (PieceNumber) and the replica that adds it up, or running
// statistics, which each sends to all.
struct OwnedPiece {
  Piece piece;
  uint32_t number = 0;
  int owner = 0;
  bool to_all = false;
  // Tensor-parallel part (models/parts.h) whose parameters these are; unset: all parts have them.
  std::optional<int> part = std::nullopt;
};

// Returns what the replicas of a stage exchange, in the order in which they send it: pieces of its
// parameters' gradients, then running statistics.
std::vector<OwnedPiece> PiecesOfStage(const Partition& partition, int stage, int replicas);

}  // namespace thinwire
