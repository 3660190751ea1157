#include "coordinator/files/model_folder.h"

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace thinwire {

namespace fs = std::filesystem;

absl::StatusOr<ModelFolder> ModelFolder::Open(const std::string& dir) {
  ModelFolder folder(dir);
  const absl::StatusOr<std::string> index = ReadFile(dir + "/" + kModelIndex);
  if (index.ok()) {
    RETURN_IF_ERROR(folder.OpenShards(*index));
    return folder;
  }
  std::error_code error;
  if (!absl::IsNotFound(index.status())) return index.status();
  if (!fs::exists(dir, error)) return FileError(dir, "cannot open", error ? error.value() : ENOENT);
  if (!fs::exists(dir + "/" + kModelFile, error)) {
    return absl::NotFoundError(
        absl::StrCat(dir, ": has neither ", kModelFile, " nor ", kModelIndex));
  }
  RETURN_IF_ERROR(folder.OpenSingle());
  return folder;
}

absl::StatusOr<ModelFolder> ModelFolder::OpenFiles(const std::string& dir,
                                                   const std::vector<std::string>& files) {
  ModelFolder folder(dir);
  for (const std::string& name : files) {
    ASSIGN_OR_RETURN(OpenTensorFile file, OpenTensorFile::Open(dir + "/" + name));
    for (const TensorPlace& tensor : file.header().tensors) {
      if (folder.tensors_.insert({tensor.name, {tensor, folder.files_.size()}}).second) continue;
      return absl::DataLossError(
          absl::StrCat(dir, "/", name, ": ", tensor.name, " stands in another file, too"));
    }
    folder.files_.push_back(std::move(file));
  }
  return folder;
}

absl::Status ModelFolder::OpenSingle() {
  ASSIGN_OR_RETURN(OpenTensorFile file, OpenTensorFile::Open(dir_ + "/" + kModelFile));
  for (const TensorPlace& tensor : file.header().tensors) tensors_[tensor.name] = {tensor, 0};
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status ModelFolder::OpenShards(const std::string& text) {
  const std::string path = dir_ + "/" + kModelIndex;
  const auto index = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
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
  for (const auto& [shard, names] : by_shard) {
    ASSIGN_OR_RETURN(OpenTensorFile file, OpenTensorFile::Open(dir_ + "/" + shard));
    std::map<std::string_view, const TensorPlace*> there;
    for (const TensorPlace& tensor : file.header().tensors) there[tensor.name] = &tensor;
    for (const std::string& name : names) {
      const auto found = there.find(name);
      if (found == there.end()) {
        return absl::DataLossError(
            absl::StrCat(dir_, "/", shard, ": ", name, ", which the index names, is not there"));
      }
      tensors_[name] = {*found->second, files_.size()};
    }
    files_.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::Status WriteModelIndex(const std::string& dir, const std::vector<std::string>& files) {
  nlohmann::json weight_map = nlohmann::json::object();
  uint64_t total_bytes = 0;
  for (const std::string& name : files) {
    ASSIGN_OR_RETURN(const OpenTensorFile file, OpenTensorFile::Open(dir + "/" + name));
    for (const TensorPlace& tensor : file.header().tensors) weight_map[tensor.name] = name;
    total_bytes += file.data_bytes();
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_bytes}}},
                                {"weight_map", std::move(weight_map)}};
  return ReplaceFile(dir + "/" + kModelIndex, index.dump(2) + "\n");
}

}  // namespace thinwire
