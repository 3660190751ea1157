// Documents that are packed into samples, from where messages say that they begin.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/sampler.h"
#include "nn/pass.h"
#include "tensor/device.h"

namespace thinwire {

// Returns the documents of `positions` of `samples` samples, on the device. `starts` are
// MessageHeader::document_starts of whole samples of `whole` positions.
absl::StatusOr<PackedDocuments> DocumentsOf(absl::Span<const uint32_t> starts, int64_t samples,
                                            int64_t whole, SampleRange positions, Device* device);

}  // namespace thinwire
