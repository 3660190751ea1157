#include "config/owned_pieces.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace thinwire {
namespace {

// Returns the parameters that have a gradient of their own. A copy of a weight of the same segment
// has its memory.
std::vector<ParameterSpec> ParametersOf(const Partition& partition, int segment) {
  std::vector<ParameterSpec> trained;
  const BlockRange blocks = SegmentBlocks(partition.model, partition.cuts, segment);
  for (int block = blocks.first; block < blocks.last; ++block) {
    for (const ParameterSpec& parameter : Parameters(partition.model.blocks[block])) {
      const bool follows =
          !parameter.tied_to.empty() &&
          std::any_of(trained.begin(), trained.end(),
                      [&](const ParameterSpec& other) { return other.name == parameter.tied_to; });
      if (parameter.is_trained() && !follows) trained.push_back(parameter);
    }
  }
  return trained;
}

// Returns the running statistics of a segment as a piece, which goes to all as it is.
std::optional<OwnedPiece> StatisticsOf(const Partition& partition, int segment) {
  int64_t elements = 0;
  const BlockRange blocks = SegmentBlocks(partition.model, partition.cuts, segment);
  for (int block = blocks.first; block < blocks.last; ++block) {
    for (const ParameterSpec& parameter : Parameters(partition.model.blocks[block])) {
      const bool counts = parameter.role == ParameterSpec::Role::kStatistics;
      if (counts) elements += parameter.shape.elements();
    }
  }
  if (elements == 0) return std::nullopt;
  OwnedPiece statistics;
  statistics.piece.shape = {1, elements};
  statistics.number = PieceNumber(segment, kStatisticsPlace);
  statistics.to_all = true;
  return statistics;
}

}  // namespace

std::vector<OwnedPiece> PiecesOfStage(const Partition& partition, int stage, int replicas) {
  std::vector<OwnedPiece> all;
  for (int segment = 0; segment <= static_cast<int>(partition.cuts.size()); ++segment) {
    if (partition.placement.StageOf(segment) != stage) continue;
    const std::vector<ParameterSpec> parameters = ParametersOf(partition, segment);
    std::vector<Piece> pieces = PiecesOf(parameters);
    const std::vector<int> owners = OwnersOf(pieces, segment, replicas);
    for (size_t place = 0; place < pieces.size(); ++place) {
      OwnedPiece owned;
      // The parameters of a piece are all of one part, or none is.
      const ParameterSlice& slice = parameters[pieces[place].parts.front().parameter].slice;
      if (!slice.whole.empty()) owned.part = slice.part;
      owned.piece = std::move(pieces[place]);
      owned.number = PieceNumber(segment, place);
      owned.owner = owners[place];
      all.push_back(std::move(owned));
    }
  }
  for (int segment = 0; segment <= static_cast<int>(partition.cuts.size()); ++segment) {
    if (partition.placement.StageOf(segment) != stage) continue;
    std::optional<OwnedPiece> statistics = StatisticsOf(partition, segment);
    if (statistics) all.push_back(*std::move(statistics));
  }
  return all;
}

}  // namespace thinwire
