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

// One tensor of a file.
struct StoredTensor {
  std::string name;
  std::string dtype;           // the format's name: "F32", "BF16"
  std::vector<int64_t> shape;  // empty: a scalar
  std::string_view data;       // little-endian, row-major; not owned
};

// Contents of a file.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;  // in the order of their data
};

// Returns everything before the data, for `tensors` in their order with sizes `bytes`. Their `data`
// is not read, so it can follow piece by piece. Adds format=pt, which PyTorch's reader demands.
std::string SafetensorsPrefix(const Safetensors& file, const std::vector<uint64_t>& bytes);

// Passes the whole file to `sink` in pieces of at most `piece_bytes`, in order; stops at its first
// error.
absl::Status WriteSafetensors(const Safetensors& file, size_t piece_bytes,
                              const std::function<absl::Status(std::string_view)>& sink);

// Place of a tensor among the data of a file.
struct TensorPlace {
  std::string name, dtype;     // as in StoredTensor
  std::vector<int64_t> shape;  // as in StoredTensor
  uint64_t begin = 0;          // first byte, counted from the end of the header
  uint64_t bytes = 0;
};

// Contents of a file's header.
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorPlace> tensors;  // in the order of their data, with nothing between them
};

// Size of the length of the JSON header, with which a file begins.
inline constexpr size_t kSafetensorsLengthBytes = 8;
// Returns the length that these 8 bytes hold.
uint64_t SafetensorsHeaderBytes(std::string_view length);

// Parses the JSON after the length; `data_bytes` is the number of bytes after it, if known. Tensors
// may be F32, BF16, F16, F64 or of the integer types. DataLoss says what is wrong: no JSON, a
// tensor whose bytes do not match its shape, an overlap or a gap between tensors, missing or extra
// bytes.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                         std::optional<uint64_t> data_bytes);

// Parses a whole file. The result has views into `file`, which must outlive it. DataLoss as above.
absl::StatusOr<Safetensors> ParseSafetensors(std::string_view file);

}  // namespace thinwire
