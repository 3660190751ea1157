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

using Json = nlohmann::json;  // ordered_json finds keys by linear search

constexpr size_t kAlignment = 8;  // alignment of the data, which the format demands
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

// Returns the bytes of the elements of that shape; nothing if they are more than any file has.
std::optional<uint64_t> ShapeBytes(const TensorPlace& tensor) {
  uint64_t bytes = BytesOf(tensor.dtype);
  for (const int64_t extent : tensor.shape) {
    if (extent < 0) return std::nullopt;
    const auto factor = static_cast<uint64_t>(extent);
    if (factor != 0 && bytes > std::numeric_limits<uint64_t>::max() / factor) return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

absl::StatusOr<TensorPlace> ParseTensor(const std::string& name, const Json& json,
                                        std::optional<uint64_t> data_bytes) {
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
  TensorPlace tensor;
  tensor.name = name;
  tensor.dtype = json["dtype"].get<std::string>();
  tensor.shape = json["shape"].get<std::vector<int64_t>>();
  if (BytesOf(tensor.dtype) == 0) {
    return Malformed(absl::StrCat("tensor ", name, ": unknown dtype ", tensor.dtype));
  }
  tensor.begin = json["data_offsets"][0];
  const uint64_t end = json["data_offsets"][1];
  const std::optional<uint64_t> want = ShapeBytes(tensor);
  if (tensor.begin > end || end > data_bytes.value_or(end) || want != end - tensor.begin) {
    return Malformed(absl::StrCat("tensor ", name, ": bytes ", tensor.begin, " to ", end,
                                  data_bytes ? absl::StrCat(" of ", *data_bytes) : "",
                                  ", its shape wants ", want.value_or(0)));
  }
  tensor.bytes = end - tensor.begin;
  return tensor;
}

absl::Status ParseMetadata(const Json& json, std::map<std::string, std::string>* metadata) {
  if (!json.is_object()) return Malformed("__metadata__ is no map");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Malformed(absl::StrCat("__metadata__.", key, " is no text"));
    (*metadata)[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Checks that tensors follow each other without gap or overlap, as the format demands.
absl::Status CheckOrder(const std::vector<TensorPlace>& tensors,
                        std::optional<uint64_t> data_bytes) {
  uint64_t at = 0;
  for (const TensorPlace& tensor : tensors) {
    if (tensor.begin != at) {
      return Malformed(
          absl::StrCat("tensor ", tensor.name, " begins at byte ", tensor.begin, ", want ", at));
    }
    at += tensor.bytes;
  }
  if (at == data_bytes.value_or(at)) return absl::OkStatus();
  return Malformed(absl::StrCat(*data_bytes, " bytes of data, its tensors have ", at));
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
  std::string prefix(kSafetensorsLengthBytes, '\0');
  for (size_t i = 0; i < prefix.size(); ++i) prefix[i] = static_cast<char>(json.size() >> (8 * i));
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

uint64_t SafetensorsHeaderBytes(std::string_view length) {
  uint64_t bytes = 0;  // little-endian: the last byte is the most significant
  for (size_t i = kSafetensorsLengthBytes; i-- > 0;) {
    bytes = bytes << 8 | static_cast<uint8_t>(length[i]);
  }
  return bytes;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                         std::optional<uint64_t> data_bytes) {
  const Json header = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Malformed("the header is no JSON map");
  SafetensorsHeader parsed;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      RETURN_IF_ERROR(ParseMetadata(entry, &parsed.metadata));
      continue;
    }
    ASSIGN_OR_RETURN(TensorPlace tensor, ParseTensor(name, entry, data_bytes));
    parsed.tensors.push_back(std::move(tensor));
  }
  std::stable_sort(parsed.tensors.begin(), parsed.tensors.end(),
                   [](const TensorPlace& a, const TensorPlace& b) { return a.begin < b.begin; });
  RETURN_IF_ERROR(CheckOrder(parsed.tensors, data_bytes));
  return parsed;
}

absl::StatusOr<Safetensors> ParseSafetensors(std::string_view file) {
  if (file.size() < kSafetensorsLengthBytes) {
    return Malformed(absl::StrCat(file.size(), " bytes, want at least ", kSafetensorsLengthBytes));
  }
  const uint64_t header_bytes = SafetensorsHeaderBytes(file);
  file.remove_prefix(kSafetensorsLengthBytes);
  if (header_bytes > file.size()) {
    return Malformed(absl::StrCat("a header of ", header_bytes, " bytes, ", file.size(), " there"));
  }
  const std::string_view data = file.substr(header_bytes);
  ASSIGN_OR_RETURN(SafetensorsHeader header,
                   ParseSafetensorsHeader(file.substr(0, header_bytes), data.size()));
  Safetensors parsed;
  parsed.metadata = std::move(header.metadata);
  for (TensorPlace& tensor : header.tensors) {
    parsed.tensors.push_back({std::move(tensor.name), std::move(tensor.dtype),
                              std::move(tensor.shape), data.substr(tensor.begin, tensor.bytes)});
  }
  return parsed;
}

}  // namespace thinwire
