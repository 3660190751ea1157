// The safetensors format: eight bytes of header length (little-endian), a JSON header, raw tensors
// back to back (https://huggingface.co/docs/safetensors).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

// Where a tensor stands among the data of a file.
struct TensorPlace {
  std::string name, dtype;     // as in StoredTensor
  std::vector<int64_t> shape;  // likewise
  uint64_t begin = 0;          // first byte behind the header
  uint64_t bytes = 0;
};

// What a file says before its data.
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorPlace> tensors;  // in the order of their data, with nothing between them
};

// A file begins with the length of its JSON header.
inline constexpr size_t kSafetensorsLengthBytes = 8;
// The length that the first 8 bytes tell.
uint64_t SafetensorsHeaderBytes(std::string_view length);

// From the JSON behind the length, and the number of bytes behind that where it is known. Tensors
// of F32, BF16, F16, F64 and the integer types. DataLoss says what is wrong: no JSON, a tensor
// whose bytes are not those of its shape, that overlaps another, or leaves a gap; bytes missing or
// left over.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                         std::optional<uint64_t> data_bytes);

// All of a file: views into `file`, which must outlive them. DataLoss likewise.
absl::StatusOr<Safetensors> ParseSafetensors(std::string_view file);

}  // namespace thinwire
