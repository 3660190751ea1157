#include "stage_server/stage/documents.h"

#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

absl::StatusOr<Tensor> OnDevice(const std::vector<int32_t>& values, const Shape& shape,
                                Device* device) {
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(device, DType::kI32, shape));
  RETURN_IF_ERROR(ToStatus(device->CopyFromHost(tensor.data(), values.data(), tensor.bytes())));
  return tensor;
}

}  // namespace

absl::StatusOr<PackedDocuments> DocumentsOf(absl::Span<const uint32_t> starts, int64_t samples,
                                            int64_t whole, SampleRange positions, Device* device) {
  std::vector<int32_t> first, place;
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t start = 0;
    for (int64_t t = 0; t < positions.last; ++t) {
      if (!starts.empty() && starts.front() == sample * whole + t) {
        start = t;
        starts.remove_prefix(1);
      }
      if (t < positions.first) continue;
      first.push_back(static_cast<int32_t>(start));
      place.push_back(static_cast<int32_t>(t - start));
    }
    // Documents that begin behind these positions do not matter.
    while (!starts.empty() && starts.front() < (sample + 1) * whole) starts.remove_prefix(1);
  }
  const Shape shape = {samples, positions.last - positions.first};
  PackedDocuments documents;
  ASSIGN_OR_RETURN(documents.first, OnDevice(first, shape, device));
  ASSIGN_OR_RETURN(documents.place, OnDevice(place, shape, device));
  return documents;
}

}  // namespace thinwire
