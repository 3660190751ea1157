#include "base/safetensors.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;  // ordered_json looks its keys up one by one

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;  // of the data, as the format wants it
constexpr char kMetadata[] = "__metadata__";

absl::Status Malformed(const std::string& what) {
  return absl::DataLossError(absl::StrCat("safetensors: ", what));
}

uint64_t BytesOf(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL") return 1;
  return 0;
}

// The bytes of the elements of that shape; nothing if they are more than any file has.
std::optional<uint64_t> ShapeBytes(const StoredTensor& tensor) {
  uint64_t bytes = BytesOf(tensor.dtype);
  for (const int64_t extent : tensor.shape) {
    if (extent < 0) return std::nullopt;
    const auto factor = static_cast<uint64_t>(extent);
    if (factor != 0 && bytes > std::numeric_limits<uint64_t>::max() / factor) return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

// A tensor and where its data begins.
using Placed = std::pair<uint64_t, StoredTensor>;

absl::StatusOr<Placed> ParseTensor(const std::string& name, const Json& json,
                                   std::string_view data) {
  const auto whole = [](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& item) {
             return item.is_number_unsigned();
           });
  };
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
      !json.contains("shape") || !whole(json["shape"]) || !json.contains("data_offsets") ||
      !whole(json["data_offsets"]) || json["data_offsets"].size() != 2) {
    return Malformed(absl::StrCat("tensor ", name, ": want dtype, shape and two data_offsets"));
  }
  StoredTensor tensor;
  tensor.name = name;
  tensor.dtype = json["dtype"].get<std::string>();
  tensor.shape = json["shape"].get<std::vector<int64_t>>();
  if (BytesOf(tensor.dtype) == 0) {
    return Malformed(absl::StrCat("tensor ", name, ": unknown dtype ", tensor.dtype));
  }
  const uint64_t begin = json["data_offsets"][0], end = json["data_offsets"][1];
  const std::optional<uint64_t> want = ShapeBytes(tensor);
  if (begin > end || end > data.size() || !want || end - begin != *want) {
    return Malformed(absl::StrCat("tensor ", name, ": bytes ", begin, " to ", end, " of ",
                                  data.size(), ", its shape wants ", want.value_or(0)));
  }
  tensor.data = data.substr(begin, end - begin);
  return Placed(begin, std::move(tensor));
}

absl::Status ParseMetadata(const Json& json, std::map<std::string, std::string>* metadata) {
  if (!json.is_object()) return Malformed("__metadata__ is no map");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Malformed(absl::StrCat("__metadata__.", key, " is no text"));
    (*metadata)[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Tensors lie one after the other with nothing between: what overlaps or leaves a gap is no
// safetensors file.
absl::Status CheckOrder(const std::vector<Placed>& tensors, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const auto& [begin, tensor] : tensors) {
    if (begin != at) {
      return Malformed(
          absl::StrCat("tensor ", tensor.name, " begins at byte ", begin, ", want ", at));
    }
    at += tensor.data.size();
  }
  if (at == data_bytes) return absl::OkStatus();
  return Malformed(absl::StrCat(data_bytes, " bytes of data, its tensors have ", at));
}

}  // namespace

std::string SafetensorsPrefix(const Safetensors& file, const std::vector<uint64_t>& bytes) {
  Json header;
  header[kMetadata] = file.metadata;
  header[kMetadata]["format"] = "pt";
  uint64_t offset = 0;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const StoredTensor& tensor = file.tensors[i];
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes[i]}}};
    offset += bytes[i];
  }
  std::string json = header.dump();
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string prefix(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) prefix[i] = static_cast<char>(json.size() >> (8 * i));
  return prefix + json;
}

absl::Status WriteSafetensors(const Safetensors& file, size_t piece_bytes,
                              const std::function<absl::Status(std::string_view)>& sink) {
  const auto write = [&](std::string_view bytes) -> absl::Status {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
      RETURN_IF_ERROR(sink(bytes.substr(0, piece_bytes)));
    }
    return absl::OkStatus();
  };
  std::vector<uint64_t> bytes;
  for (const StoredTensor& tensor : file.tensors) bytes.push_back(tensor.data.size());
  RETURN_IF_ERROR(write(SafetensorsPrefix(file, bytes)));
  for (const StoredTensor& tensor : file.tensors) RETURN_IF_ERROR(write(tensor.data));
  return absl::OkStatus();
}

absl::StatusOr<Safetensors> ParseSafetensors(std::string_view file) {
  if (file.size() < kLengthBytes) {
    return Malformed(absl::StrCat(file.size(), " bytes, want at least ", kLengthBytes));
  }
  uint64_t header_bytes = 0;  // little-endian: the last byte is the highest
  for (size_t i = kLengthBytes; i-- > 0;) {
    header_bytes = header_bytes << 8 | static_cast<uint8_t>(file[i]);
  }
  file.remove_prefix(kLengthBytes);
  if (header_bytes > file.size()) {
    return Malformed(absl::StrCat("a header of ", header_bytes, " bytes, ", file.size(), " there"));
  }
  const Json header =
      Json::parse(file.substr(0, header_bytes), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Malformed("the header is no JSON map");
  const std::string_view data = file.substr(header_bytes);
  Safetensors parsed;
  std::vector<Placed> placed;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      RETURN_IF_ERROR(ParseMetadata(json, &parsed.metadata));
      continue;
    }
    ASSIGN_OR_RETURN(Placed tensor, ParseTensor(name, json, data));
    placed.push_back(std::move(tensor));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.first < b.first; });
  RETURN_IF_ERROR(CheckOrder(placed, data.size()));
  for (Placed& tensor : placed) parsed.tensors.push_back(std::move(tensor.second));
  return parsed;
}

}  // namespace thinwire
