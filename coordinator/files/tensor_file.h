// Named tensors in safetensors files on disk.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/safetensors.h"

namespace thinwire {

// A file with its bytes, into which `tensors` point.
struct TensorFile {
  std::unique_ptr<const std::string> bytes;
  Safetensors contents;
};

// NotFound or what the system said for a file that cannot be read, DataLoss for one that is
// malformed; both name it.
absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path);

// The file appears when it is complete and replaces an older one. Errors name it.
absl::Status WriteTensorFile(const std::string& path, const Safetensors& contents);

}  // namespace thinwire
