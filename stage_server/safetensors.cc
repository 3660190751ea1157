#include "stage_server/safetensors.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

std::string Header(const std::vector<const Parameter*>& parameters) {
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  size_t offset = 0;
  for (const Parameter* parameter : parameters) {
    const Shape& shape = parameter->spec.shape;
    const size_t end = offset + parameter->value.bytes();
    header[parameter->spec.name] = {{"dtype", "F32"},
                                    {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
                                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json = header.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the format's alignment of the data
  std::string prefix(8, '\0');
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<char>(json.size() >> (8 * i));
  return prefix + json;
}

}  // namespace

absl::Status WriteSafetensors(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                              const std::function<absl::Status(std::string_view)>& sink) {
  const auto write = [&](std::string_view bytes) -> absl::Status {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
      RETURN_IF_ERROR(sink(bytes.substr(0, piece_bytes)));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(write(Header(parameters)));
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
