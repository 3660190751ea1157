#include "compress/codecs/axes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/bytes.h"
#include "compress/codecs/eigenvectors.h"
#include "compress/codecs/host_view.h"
#include "compress/cpu/blocks.h"

namespace thinwire {
namespace {

constexpr size_t kScaleBytes = 4;
constexpr float kMostCode = 127;
// Largest scale of an axis. Axes have length 1, so no entry is above 1, except for rounding.
constexpr float kMostScale = 1.01f / kMostCode;
// Rows per channel that are enough to see how channels vary together.
constexpr int64_t kRowsOfChannel = 16;

size_t BytesOfAxis(int64_t channels) { return kScaleBytes + static_cast<size_t>(channels); }

// Returns the lower triangle of X^T X of (a sample of) the rows. The diagonal has NaN or infinity
// if a sampled value is not finite.
std::vector<double> Moments(const TensorView& x, int64_t channels) {
  const int64_t rows = x.elements() / channels;
  const int64_t stride = std::max<int64_t>(1, rows / (kRowsOfChannel * channels));
  std::vector<double> moments(channels * channels);
  std::vector<float> scratch(channels);
  std::vector<double> row(channels);
  for (int64_t i = 0; i < rows; i += stride) {
    const float* const values = ReadFloats(x, i * channels, channels, scratch.data());
    std::copy_n(values, channels, row.data());
    for (int64_t a = 0; a < channels; ++a) {
      const double value = row[a];
      if (value == 0) continue;
      double* const to = moments.data() + a * channels;
      for (int64_t b = 0; b <= a; ++b) to[b] += value * row[b];
    }
  }
  return moments;
}

// Writes an axis as a scale and a signed byte per channel.
void WriteAxis(const double* axis, int64_t channels, uint8_t* to) {
  double largest = 0;
  for (int64_t c = 0; c < channels; ++c) largest = std::max(largest, std::fabs(axis[c]));
  const auto scale = static_cast<float>(largest / kMostCode);
  StoreAs(scale, to);
  for (int64_t c = 0; c < channels; ++c) {
    const double code = scale > 0 ? std::nearbyint(axis[c] / scale) : 0;
    to[kScaleBytes + c] = static_cast<uint8_t>(static_cast<int8_t>(code));
  }
}

absl::StatusOr<Tensor> ToDevice(const std::vector<float>& values, const Shape& shape,
                                Device* device) {
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(device, DType::kF32, shape));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(tensor.data(), values.data(), tensor.bytes())));
  return tensor;
}

// Returns D^T (2 - D D^T), one Newton step towards the inverse of D: the error that is left is the
// square of how far D D^T is from 1.
absl::StatusOr<Tensor> InverseOf(const Tensor& axes, const std::vector<float>& transposed,
                                 CodecKernels* kernels) {
  const Shape& shape = axes.shape();
  const int64_t n = shape[0];
  std::vector<float> identity(n * n);
  for (int64_t i = 0; i < n; ++i) identity[i * n + i] = 1;
  ASSIGN_OR_RETURN(const Tensor unit, ToDevice(identity, shape, axes.device()));
  ASSIGN_OR_RETURN(const Tensor back, ToDevice(transposed, shape, axes.device()));
  ASSIGN_OR_RETURN(const Tensor product, Tensor::Allocate(axes.device(), DType::kF32, shape));
  ASSIGN_OR_RETURN(Tensor inverse, Tensor::Allocate(axes.device(), DType::kF32, shape));
  RETURN_IF_ERROR(ToStatus(kernels->Multiply(axes.view(), back.view(), product.view())));
  RETURN_IF_ERROR(ToStatus(kernels->Combine(2, unit.view(), -1, product.view(), product.view())));
  RETURN_IF_ERROR(ToStatus(kernels->Multiply(back.view(), product.view(), inverse.view())));
  return inverse;
}

}  // namespace

int64_t ChannelsOf(const Shape& shape) { return shape.rank() > 1 ? shape[shape.rank() - 1] : 1; }

size_t Axes::Bytes(int64_t channels) {
  return static_cast<size_t>(channels) * BytesOfAxis(channels);
}

uint64_t Axes::StateBytes(int64_t channels) {
  return Bytes(channels) + 2 * sizeof(float) * static_cast<uint64_t>(channels * channels);
}

absl::StatusOr<std::vector<uint8_t>> Axes::Of(const Tensor& x) {
  std::vector<uint8_t> memory;
  ASSIGN_OR_RETURN(const TensorView on_host, OnHost(x, &memory));
  const int64_t channels = ChannelsOf(x.shape());
  std::vector<double> moments = Moments(on_host, channels);
  double largest = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const double square = moments[c * channels + c];
    if (!std::isfinite(square)) return absl::OutOfRangeError("axes of NaN or infinity");
    largest = std::max(largest, square);
  }
  for (double& moment : moments) moment = largest > 0 ? moment / largest : 0;
  const Eigenvectors found = EigenvectorsOf(std::move(moments), static_cast<int>(channels));
  std::vector<uint8_t> bytes(Bytes(channels));
  for (int64_t j = 0; j < channels; ++j) {
    WriteAxis(found.vectors.data() + j * channels, channels,
              bytes.data() + j * BytesOfAxis(channels));
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<const Axes>> Axes::Read(absl::Span<const uint8_t> bytes,
                                                       int64_t channels, Device* device,
                                                       CodecKernels* kernels) {
  if (channels < 1 || channels > kMostChannels || bytes.size() != Bytes(channels)) {
    return absl::InvalidArgumentError(absl::StrCat("axes of ", bytes.size(), " bytes for ",
                                                   channels, " channels, want 1 to ", kMostChannels,
                                                   " and ", Bytes(channels), " bytes"));
  }
  std::vector<float> values(channels * channels), transposed(channels * channels);
  for (int64_t j = 0; j < channels; ++j) {
    const uint8_t* const axis = bytes.data() + j * BytesOfAxis(channels);
    const auto scale = LoadAs<float>(axis);
    if (!(scale >= 0 && scale <= kMostScale)) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", j, " with scale ", scale, ", want 0 to ", kMostScale));
    }
    for (int64_t c = 0; c < channels; ++c) {
      const float value = static_cast<int8_t>(axis[kScaleBytes + c]) * scale;
      values[j * channels + c] = transposed[c * channels + j] = value;
    }
  }
  std::shared_ptr<Axes> axes(new Axes());
  axes->channels_ = channels;
  axes->bytes_.assign(bytes.begin(), bytes.end());
  ASSIGN_OR_RETURN(axes->from_, ToDevice(values, {channels, channels}, device));
  ASSIGN_OR_RETURN(axes->to_, InverseOf(axes->from_, transposed, kernels));
  return axes;
}

}  // namespace thinwire
