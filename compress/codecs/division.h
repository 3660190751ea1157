// Division of a message into what a codec gets and what goes beside it: the first row of each
// sample and document, and of the other rows a few outlier channels. Pretrained language models
// have both: position 0 and some channels a hundred times larger than the rest, which would stretch
// the grid of all others. The layout is in docs/compression.md, outliers.
//
// A row is a run along the last axis, a channel an index of it. A sample has first rows where its
// tensor has at least three axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/kernels.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// Parts of a tensor: first rows, outlier channels of other rows, and the rest. In what the codec
// gets the first two are zeros: rows stay where they were, and as wide, so that groups, rotations
// and the entropy coder's neighbours stay in their channels.
enum class DividedPart { kFirstRows, kOutliers, kRest };

class Division {
 public:
  // Divides tensors of `shape`. `channels` are the outliers, NumOutliers of them and ascending.
  // `first_rows` are FirstRowsOf the tensors, or none if the codec gets them as well.
  Division(const Shape& shape, std::vector<uint32_t> first_rows, std::vector<uint32_t> channels);

  // Returns how many channels of a tensor of this shape `spec` sets apart: one is always left.
  static int64_t NumOutliers(const CodecSpec& spec, const Shape& shape);
  // Returns the bytes of their numbers, which a message has that chooses them.
  static size_t ChannelBytes(const CodecSpec& spec, const Shape& shape) {
    return sizeof(uint32_t) * NumOutliers(spec, shape);
  }
  // Returns whether samples of this shape have a first row.
  static bool HasFirstRows(const Shape& shape);

  // Returns whether all elements are of the rest.
  bool is_whole() const { return first_rows_.empty() && channels_.empty(); }
  // Returns the number of elements of a part.
  int64_t Count(DividedPart part) const;
  // Returns a bit for each element, set for those of the part, in memory of `device`.
  absl::StatusOr<std::shared_ptr<Buffer>> BitsOf(DividedPart part, Device* device) const;

 private:
  template <typename Visit>
  void VisitRanges(DividedPart part, const Visit& visit) const;

  const std::vector<uint32_t> first_rows_, channels_;
  int64_t rows_ = 0, width_ = 0;  // rows of the tensor, elements of a row
};

// Returns the first rows of a tensor of `shape`, ascending: of its samples if `begins_sequences`,
// and `document_rows` (MessageContext has both).
std::vector<uint32_t> FirstRowsOf(const Shape& shape, bool begins_sequences,
                                  absl::Span<const uint32_t> document_rows = {});

// Returns by how many bytes `documents` rows with which documents begin may make the payload of a
// tensor of `shape` longer than Codec::MaxPayloadBytes.
size_t MaxDocumentBytes(const CodecSpec& spec, const Shape& shape, int64_t documents);

// Returns the sum of squares of each channel, in fp64 and row by row; without the ascending
// `first_rows`.
absl::StatusOr<std::vector<double>> ChannelSquares(const Tensor& x,
                                                   absl::Span<const uint32_t> first_rows);

// Returns the `count` channels of the largest sum of squares, ascending; of equal ones the lower.
// OutOfRange if a sum is NaN or infinite.
absl::StatusOr<std::vector<uint32_t>> LargestChannels(const Tensor& x, int64_t count,
                                                      absl::Span<const uint32_t> first_rows);

}  // namespace thinwire
