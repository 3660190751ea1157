// Principal axes: directions along which the channels of a message vary together, strongest first.
// In these coordinates few numbers of each row hold most of a tensor. One end computes the axes
// from a message and sends them; both ends keep what was sent (docs/compression.md, rotation
// principal).
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

// Returns how many numbers a row of a tensor has: the extent of the last axis, 1 for a tensor of
// one axis.
int64_t ChannelsOf(const Shape& shape);

// Principal axes as both ends know them: 8-bit codes and a scale per axis, and matrices made of
// them. Immutable.
class Axes {
 public:
  // Largest number of channels. Finding the axes of more would take minutes.
  static constexpr int64_t kMostChannels = 4096;

  // Returns the number of bytes of sent axes.
  static size_t Bytes(int64_t channels);
  // Returns how many bytes one end keeps: the sent bytes and both matrices.
  static uint64_t StateBytes(int64_t channels);
  // Returns the axes of the rows of x, as bytes to send. If x has many rows, it looks at an even
  // sample of them. Equal tensors give equal bytes. OutOfRange if the sampled rows hold NaN or
  // infinity.
  static absl::StatusOr<std::vector<uint8_t>> Of(const Tensor& x);
  // Reads sent axes. InvalidArgument if `bytes` are malformed. `device` is where tensors will be
  // rotated, `kernels` are those of that device.
  static absl::StatusOr<std::shared_ptr<const Axes>> Read(absl::Span<const uint8_t> bytes,
                                                          int64_t channels, Device* device,
                                                          CodecKernels* kernels);

  int64_t channels() const { return channels_; }
  // Axes as they were sent.
  absl::Span<const uint8_t> bytes() const { return bytes_; }

  // Matrices [channels, channels] of fp32. A row of a tensor times to() gives its coordinates;
  // coordinates times from() give the row. The product of the two is the identity but for the
  // squared rounding error of the axes.
  const Tensor& to() const { return to_; }
  const Tensor& from() const { return from_; }

 private:
  Axes() = default;

  int64_t channels_ = 0;
  std::vector<uint8_t> bytes_;
  Tensor to_, from_;
};

}  // namespace thinwire
