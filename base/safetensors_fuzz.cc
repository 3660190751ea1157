// Reads any bytes as a safetensors file. They must be refused, or be read and written to bytes that
// read the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/safetensors.h"

namespace {

std::string Written(const thinwire::Safetensors& file) {
  std::string bytes;
  const absl::Status status = thinwire::WriteSafetensors(file, 7, [&bytes](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  });
  if (!status.ok()) std::abort();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = thinwire::ParseSafetensors({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  size_t bytes = 0;
  for (const thinwire::StoredTensor& tensor : file->tensors) bytes += tensor.data.size();
  if (bytes > size) std::abort();
  const std::string written = Written(*file);
  const auto again = thinwire::ParseSafetensors(written);
  if (!again.ok() || Written(*again) != written) std::abort();
  return 0;
}
