// Division of the trainable parameters of a segment into the messages in which replicas exchange
// their gradients. The division depends on the model only, not on who exchanges what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model.h"
#include "tensor/shape.h"

namespace thinwire {

// Most elements of a piece that has more than one row.
inline constexpr int64_t kPieceElements = int64_t{1} << 20;
// Fewest elements of a parameter that codecs may act on.
inline constexpr int64_t kCodedElements = 4096;

// Return the number of a piece in the model, from its segment and its place there, and the segment
// of that number. Pieces of different segments have different numbers, whichever stage has them.
inline constexpr uint32_t kPiecesOfSegment = 1 << 16;
inline uint32_t PieceNumber(int segment, size_t place) {
  return kPiecesOfSegment * static_cast<uint32_t>(segment) + static_cast<uint32_t>(place);
}
// Place of a segment's running statistics, which are exchanged beside its pieces.
inline constexpr size_t kStatisticsPlace = kPiecesOfSegment - 1;
inline int SegmentOfPiece(uint32_t number) { return static_cast<int>(number / kPiecesOfSegment); }

// Content of one message: rows of one parameter, or several whole parameters one after the other.
struct Piece {
  // Rows [first_row, first_row + rows) of a parameter's first axis.
  struct Part {
    size_t parameter = 0;  // index in the list that was divided
    int64_t first_row = 0, rows = 0;
  };

  std::string name;  // "h.0.mlp.c_fc.weight[0]", or "bn1.weight and 3 more"
  Shape shape;       // [rows, elements of a row]; [1, elements] where several parameters are joined
  bool coded = false;  // false: always sent as it is
  std::vector<Part> parts;
};

// Divides parameters into pieces. A matrix of kCodedElements or more is cut at rows into pieces of
// nearly equal numbers of rows, each of at most kPieceElements elements or of one row. All other
// parameters together are one piece, which is not coded; those of a tensor-parallel part are a
// piece of their own. These come last. Nor are bases coded, whose rows have to stay orthonormal. A
// copy of a tied weight is divided and named as its original.
std::vector<Piece> PiecesOf(const std::vector<ParameterSpec>& parameters);

// Returns who of `count` replicas adds up each of a segment's pieces. The largest piece is dealt
// first, each to the replica that adds up the fewest elements so far. Segments begin with one
// replica after the other.
std::vector<int> OwnersOf(const std::vector<Piece>& pieces, int segment, int count);

// Deals the parameters of a model that PiecesOf cuts to fragments, each to that which has the
// fewest elements so far, and returns the fragment by name. All others are in fragment 0 and have
// no entry, and so are those that a basis constrains. A copy of a tied weight is where its original
// is.
std::map<std::string, int> FragmentsOf(const std::vector<ParameterSpec>& parameters, int fragments);

}  // namespace thinwire
