#include "compress/codecs/division.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "compress/codecs/axes.h"
#include "compress/codecs/host_view.h"
#include "compress/cpu/blocks.h"

namespace thinwire {
namespace {

// Sets bits [begin, end).
void SetBits(int64_t begin, int64_t end, uint64_t* words) {
  while (begin < end) {
    const int64_t n = std::min<int64_t>(end - begin, 64 - begin % 64);
    words[begin / 64] |= (~uint64_t{0} >> (64 - n)) << begin % 64;
    begin += n;
  }
}

}  // namespace

Division::Division(const Shape& shape, std::vector<uint32_t> first_rows,
                   std::vector<uint32_t> channels)
    : first_rows_(std::move(first_rows)), channels_(std::move(channels)) {
  if (shape.elements() == 0) return;
  width_ = ChannelsOf(shape);
  rows_ = shape.elements() / width_;
}

int64_t Division::NumOutliers(const CodecSpec& spec, const Shape& shape) {
  if (shape.elements() == 0) return 0;
  return std::min<int64_t>(spec.outliers, ChannelsOf(shape) - 1);
}

bool Division::HasFirstRows(const Shape& shape) {
  return shape.rank() >= 3 && shape.elements() > 0;
}

int64_t Division::Count(DividedPart part) const {
  const auto first_rows = static_cast<int64_t>(first_rows_.size());
  const auto outliers = static_cast<int64_t>(channels_.size());
  switch (part) {
    case DividedPart::kFirstRows:
      return first_rows * width_;
    case DividedPart::kOutliers:
      return (rows_ - first_rows) * outliers;
    case DividedPart::kRest:
      return (rows_ - first_rows) * (width_ - outliers);
  }
  return 0;
}

// Calls visit(begin, end) for each run of neighbouring elements of the part, in memory order.
template <typename Visit>
void Division::VisitRanges(DividedPart part, const Visit& visit) const {
  auto first = first_rows_.begin();
  for (int64_t row = 0; row < rows_; ++row) {
    const int64_t begin = row * width_;
    const bool is_first = first != first_rows_.end() && *first == row;
    if (is_first) ++first;
    if (part == DividedPart::kFirstRows && is_first) visit(begin, begin + width_);
    if (part == DividedPart::kFirstRows || is_first) continue;
    int64_t next = begin;
    for (const uint32_t channel : channels_) {
      const int64_t at = begin + channel;
      if (part == DividedPart::kOutliers) visit(at, at + 1);
      if (part == DividedPart::kRest) visit(next, at);
      next = at + 1;
    }
    if (part == DividedPart::kRest) visit(next, begin + width_);
  }
}

absl::StatusOr<std::shared_ptr<Buffer>> Division::BitsOf(DividedPart part, Device* device) const {
  std::vector<uint64_t> words((rows_ * width_ + 63) / 64);
  VisitRanges(part, [&](int64_t begin, int64_t end) { SetBits(begin, end, words.data()); });
  const size_t bytes = sizeof(uint64_t) * words.size();
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> bits, Buffer::Allocate(device, bytes));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(bits->data(), words.data(), bytes)));
  return bits;
}

std::vector<uint32_t> FirstRowsOf(const Shape& shape, bool begins_sequences,
                                  absl::Span<const uint32_t> document_rows) {
  if (!Division::HasFirstRows(shape)) return {};
  std::vector<uint32_t> of_samples, all;
  const auto rows = static_cast<uint32_t>(shape.elements() / ChannelsOf(shape) / shape[0]);
  for (int64_t i = 0; begins_sequences && i < shape[0]; ++i) of_samples.push_back(i * rows);
  std::set_union(of_samples.begin(), of_samples.end(), document_rows.begin(), document_rows.end(),
                 std::back_inserter(all));
  return all;
}

size_t MaxDocumentBytes(const CodecSpec& spec, const Shape& shape, int64_t documents) {
  if (spec.first_position == FirstPosition::kCoded || !Division::HasFirstRows(shape)) return 0;
  return SizeOf(DType::kF32) * documents * ChannelsOf(shape);
}

absl::StatusOr<std::vector<double>> ChannelSquares(const Tensor& x,
                                                   absl::Span<const uint32_t> first_rows) {
  const int64_t width = ChannelsOf(x.shape());
  std::vector<double> sums(width);
  if (x.elements() == 0) return sums;
  std::vector<uint8_t> memory;
  ASSIGN_OR_RETURN(const TensorView on_host, OnHost(x, &memory));
  const int64_t rows = x.elements() / width;
  std::vector<float> scratch(width);
  for (int64_t row = 0; row < rows; ++row) {
    if (!first_rows.empty() && first_rows.front() == row) {
      first_rows.remove_prefix(1);
      continue;
    }
    const float* const values = ReadFloats(on_host, row * width, width, scratch.data());
    for (int64_t c = 0; c < width; ++c) sums[c] += static_cast<double>(values[c]) * values[c];
  }
  return sums;
}

absl::StatusOr<std::vector<uint32_t>> LargestChannels(const Tensor& x, int64_t count,
                                                      absl::Span<const uint32_t> first_rows) {
  ASSIGN_OR_RETURN(const std::vector<double> sums, ChannelSquares(x, first_rows));
  for (const double sum : sums) {
    if (!std::isfinite(sum)) return absl::OutOfRangeError("outliers of NaN or infinity");
  }
  std::vector<uint32_t> channels(sums.size());
  std::iota(channels.begin(), channels.end(), 0u);
  std::stable_sort(channels.begin(), channels.end(),
                   [&](uint32_t a, uint32_t b) { return sums[a] > sums[b]; });
  channels.resize(count);
  std::sort(channels.begin(), channels.end());
  return channels;
}

}  // namespace thinwire
