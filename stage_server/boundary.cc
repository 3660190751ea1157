#include "stage_server/boundary.h"

#include <algorithm>
#include <memory>

#include "base/status.h"
#include "compress/codec.h"

namespace thinwire {

absl::StatusOr<uint64_t> MaxPayloadBytes(const BoundarySpec& spec) {
  ASSIGN_OR_RETURN(auto codec, NewCodec(spec.codec, spec.kernels));
  const Shape largest = spec.sample.WithBatch(spec.max_batch);
  const uint64_t exact = static_cast<uint64_t>(largest.elements()) * SizeOf(spec.compute);
  return std::max<uint64_t>(exact, codec->MaxPayloadBytes(largest, spec.compute));
}

}  // namespace thinwire
