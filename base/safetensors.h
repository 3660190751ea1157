// The safetensors format: eight bytes of header length (little-endian), a JSON header, raw tensors
// back to back (https://huggingface.co/docs/safetensors).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

struct StoredTensor {
  std::string name;
  std::string dtype;           // the format's: "F32", "BF16"
  std::vector<int64_t> shape;  // empty: a scalar
  std::string_view data;       // little-endian, row-major; not owned
};

struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;  // in the order of their data
};

// Everything before the data: `tensors` in their order, `bytes` long each. Their `data` is not
// looked at, so that it may follow piece by piece. PyTorch's reader wants format=pt, which is
// added.
std::string SafetensorsPrefix(const Safetensors& file, const std::vector<uint64_t>& bytes);

// Hands the whole file to `sink` in pieces of at most `piece_bytes`, in order; stops at its first
// error.
absl::Status WriteSafetensors(const Safetensors& file, size_t piece_bytes,
                              const std::function<absl::Status(std::string_view)>& sink);

// Views into `file`, which must outlive them. Tensors of F32, BF16, F16 and the integer types.
// DataLoss says what is wrong: bytes missing or left over, a header that is no JSON, a tensor whose
// bytes are not those of its shape, or that overlaps another.
absl::StatusOr<Safetensors> ParseSafetensors(std::string_view file);

}  // namespace thinwire
