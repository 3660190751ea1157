#include "stage_server/safetensors.h"

#include <algorithm>
#include <string>

#include "base/safetensors.h"
#include "base/status.h"

namespace thinwire {

absl::Status WriteParameters(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                             const std::function<absl::Status(std::string_view)>& sink) {
  const auto write = [&](std::string_view bytes) -> absl::Status {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
      RETURN_IF_ERROR(sink(bytes.substr(0, piece_bytes)));
    }
    return absl::OkStatus();
  };
  Safetensors file;
  std::vector<uint64_t> bytes;
  for (const Parameter* parameter : parameters) {
    const Shape& shape = parameter->spec.shape;
    file.tensors.push_back({parameter->spec.name, "F32", {shape.begin(), shape.end()}, {}});
    bytes.push_back(parameter->value.bytes());
  }
  RETURN_IF_ERROR(write(SafetensorsPrefix(file, bytes)));
  std::string host;
  for (const Parameter* parameter : parameters) {
    const Tensor& value = parameter->value;
    host.resize(value.bytes());
    RETURN_IF_ERROR(ToStatus(value.device()->CopyToHost(host.data(), value.data(), value.bytes())));
    RETURN_IF_ERROR(write(host));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
