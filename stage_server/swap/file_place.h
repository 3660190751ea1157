// A file as a place for tensors, with a checksum for each.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "stage_server/swap/place.h"
#include "stage_server/swap/swap_file.h"
#include "tensor/device.h"

namespace thinwire {

// Makes a place for memory of `device` and of its host. Bytes that come back otherwise than they
// went are DataLoss.
absl::StatusOr<std::unique_ptr<SwapPlace>> NewFilePlace(Device* device,
                                                        const SwapFileOptions& options);

}  // namespace thinwire
