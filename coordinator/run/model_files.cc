#include "coordinator/run/model_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "coordinator/files/file.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

// safetensors: header bytes as u64 little-endian, a JSON header, then the tensors.
constexpr uint64_t kLengthBytes = 8;

uint64_t LittleEndian(const unsigned char (&bytes)[kLengthBytes]) {
  uint64_t value = 0;
  // The last byte is the highest: it goes in first, and each further one shifts it up by 8 bits.
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

absl::Status ReceiveShard(StageClient& stage, const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot open", errno);
  absl::Status status = stage.ExportParameters(
      [&](const FileChunk& chunk) { return WriteAll(file, path, chunk.data()); });
  if (status.ok() && fsync(file) != 0) status = FileError(path, "cannot sync", errno);
  if (close(file) != 0 && status.ok()) status = FileError(path, "cannot close", errno);
  return status;
}

absl::Status WriteIndex(const std::string& dir, int shards) {
  nlohmann::json weight_map = nlohmann::json::object();
  uint64_t total_bytes = 0;
  for (int i = 0; i < shards; ++i) {
    const std::string name = ShardName(i, shards);
    ASSIGN_OR_RETURN(const ShardContents contents, ReadShardContents(dir + "/" + name));
    for (const std::string& tensor : contents.tensors) weight_map[tensor] = name;
    total_bytes += contents.data_bytes;
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_bytes}}},
                                {"weight_map", std::move(weight_map)}};
  return ReplaceFile(dir + "/model.safetensors.index.json", index.dump(2) + "\n");
}

// Gathers the files in `temporary`, which then becomes `dir`.
absl::Status SaveModelAs(Fleet* fleet, const std::string& temporary, const std::string& dir) {
  std::error_code error;
  fs::remove_all(temporary, error);
  if (!error) fs::create_directories(temporary, error);
  if (error) return FileError(temporary, "cannot make the folder", error.value());
  RETURN_IF_ERROR(fleet->OnAll([&](StageClient& stage) {
    return ReceiveShard(stage, temporary + "/" + ShardName(stage.stage(), fleet->size()));
  }));
  RETURN_IF_ERROR(WriteIndex(temporary, fleet->size()));
  fs::remove_all(dir, error);
  if (!error) fs::rename(temporary, dir, error);
  if (error) return FileError(dir, "cannot replace the folder", error.value());
  return absl::OkStatus();
}

}  // namespace

std::string ShardName(int shard, int shards) {
  return absl::StrFormat("model-%05d-of-%05d.safetensors", shard + 1, shards);
}

absl::StatusOr<ShardContents> ReadShardContents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (!file || error) return FileError(path, "cannot read", error ? error.value() : EIO);
  unsigned char length[kLengthBytes];
  if (!file.read(reinterpret_cast<char*>(length), kLengthBytes)) {
    return absl::DataLossError(absl::StrCat(path, ": ", size, " bytes, want at least 8"));
  }
  const uint64_t header_bytes = LittleEndian(length);
  if (header_bytes > size - kLengthBytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": a header of ", header_bytes, " bytes in a file of ", size));
  }
  std::string header(header_bytes, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  const auto json = nlohmann::json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError(absl::StrCat(path, ": header is not JSON"));
  ShardContents contents;
  for (const auto& [name, tensor] : json.items()) {
    if (name != "__metadata__") contents.tensors.push_back(name);
  }
  contents.data_bytes = size - kLengthBytes - header_bytes;
  return contents;
}

absl::StatusOr<LoadedModel> LoadModel(const std::string& dir) {
  const std::string path = dir + "/model.safetensors.index.json";
  std::ifstream file(path);
  if (!file) return FileError(path, "cannot open", errno);
  const auto index = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return absl::DataLossError(absl::StrCat(path, ": is no index with a weight_map"));
  }
  std::map<std::string, std::vector<std::string>> by_shard;  // names of tensors
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || fs::path(shard.get<std::string>()).has_parent_path()) {
      return absl::DataLossError(absl::StrCat(path, ": ", tensor, " stands in no shard"));
    }
    by_shard[shard.get<std::string>()].push_back(tensor);
  }
  LoadedModel model;
  for (const auto& [shard, names] : by_shard) {
    ASSIGN_OR_RETURN(TensorFile read, ReadTensorFile(dir + "/" + shard));
    std::map<std::string_view, const StoredTensor*> there;
    for (const StoredTensor& tensor : read.contents.tensors) there[tensor.name] = &tensor;
    for (const std::string& name : names) {
      const auto found = there.find(name);
      if (found == there.end()) {
        return absl::DataLossError(
            absl::StrCat(dir, "/", shard, ": ", name, ", which the index names, is not there"));
      }
      model.tensors.push_back(*found->second);
    }
    model.shards.push_back(std::move(read));
  }
  return model;
}

absl::Status SaveModel(Fleet* fleet, const std::string& dir) {
  const std::string temporary = dir + ".tmp";
  absl::Status status = SaveModelAs(fleet, temporary, dir);
  std::error_code ignored;
  fs::remove_all(temporary, ignored);  // only there after an error
  return status;
}

}  // namespace thinwire
