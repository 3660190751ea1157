// Principal axes: directions along which the channels of a message vary together, most first. Along
// them most of a tensor stands in few numbers of each row. One end takes them from a message and
// sends them; both keep what was sent (docs/compression.md, rotation principal).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// How many numbers a row of a tensor has: the extent of its last axis; 1 of a tensor of one axis.
int64_t ChannelsOf(const Shape& shape);

class Axes {
 public:
  // What finding the axes of more would take is minutes.
  static constexpr int64_t kMostChannels = 4096;

  static size_t Bytes(int64_t channels);
  // What one end keeps.
  static uint64_t StateBytes(int64_t channels);
  // Those of the rows of x, as they are sent. Of many rows a part is looked at, evenly. Equal
  // tensors give equal bytes. OutOfRange if what is looked at has NaN or infinity.
  static absl::StatusOr<std::vector<uint8_t>> Of(const Tensor& x);
  // InvalidArgument if they are malformed. `device`: where tensors will be rotated; `kernels` are
  // its own.
  static absl::StatusOr<std::shared_ptr<const Axes>> Read(absl::Span<const uint8_t> bytes,
                                                          int64_t channels, Device* device,
                                                          CodecKernels* kernels);

  int64_t channels() const { return channels_; }
  // As they were sent.
  absl::Span<const uint8_t> bytes() const { return bytes_; }

  // [channels, channels], fp32: a row times this are its coordinates, and these times the other are
  // the row, but for what rounding of the axes leaves (their inverse to first order).
  const Tensor& to() const { return to_; }
  const Tensor& from() const { return from_; }

 private:
  Axes() = default;

  int64_t channels_ = 0;
  std::vector<uint8_t> bytes_;
  Tensor to_, from_;
};

// What one end of a direction keeps.
struct KeptAxes {
  std::shared_ptr<const Axes> axes;  // null: none yet
  uint64_t messages = 0;             // the sender's: how many it has coded in them
};

}  // namespace thinwire
