#include "base/model_folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace thinwire {

namespace fs = std::filesystem;

absl::StatusOr<ModelFolder> ModelFolder::Open(const std::string& dir) {
  ModelFolder folder(dir);
  std::error_code error;  // ignored: an unreadable file fails when the index is read
  if (fs::exists(dir + "/" + kModelFile, error)) {
    RETURN_IF_ERROR(folder.OpenSingle());
    RETURN_IF_ERROR(folder.ShowPacked());
    return folder;
  }
  const absl::StatusOr<std::string> index = ReadFile(dir + "/" + kModelIndex);
  if (index.ok()) {
    RETURN_IF_ERROR(folder.OpenShards(*index));
    RETURN_IF_ERROR(folder.ShowPacked());
    return folder;
  }
  if (!absl::IsNotFound(index.status())) return index.status();
  if (!fs::exists(dir, error)) return FileError(dir, "cannot open", error ? error.value() : ENOENT);
  return absl::NotFoundError(absl::StrCat(dir, ": has neither ", kModelFile, " nor ", kModelIndex));
}

absl::StatusOr<ModelFolder> ModelFolder::OpenFiles(const std::string& dir,
                                                   const std::vector<std::string>& files) {
  ModelFolder folder(dir);
  for (const std::string& name : files) {
    ASSIGN_OR_RETURN(OpenTensorFile file, OpenTensorFile::Open(dir + "/" + name));
    folder.files_.push_back(std::move(file));
    for (const TensorPlace& tensor : folder.files_.back().header().tensors) {
      const Entry entry = {tensor, folder.files_.size() - 1};
      if (folder.tensors_.insert({tensor.name, entry}).second) continue;
      return absl::DataLossError(
          absl::StrCat(dir, "/", name, ": ", tensor.name, " stands in another file, too"));
    }
  }
  RETURN_IF_ERROR(folder.ShowPacked());
  return folder;
}

ModelFolder ModelFolder::Elsewhere(std::string dir, const std::vector<TensorPlace>& tensors) {
  ModelFolder folder(std::move(dir));
  folder.is_elsewhere_ = true;
  for (const TensorPlace& tensor : tensors) folder.tensors_[tensor.name] = {tensor, 0};
  return folder;
}

absl::Status ModelFolder::OpenSingle() {
  ASSIGN_OR_RETURN(OpenTensorFile file, OpenTensorFile::Open(dir_ + "/" + kModelFile));
  files_.push_back(std::move(file));
  for (const TensorPlace& tensor : files_[0].header().tensors) tensors_[tensor.name] = {tensor, 0};
  return absl::OkStatus();
}

absl::Status ModelFolder::ShowPacked() {
  std::map<std::string, ShardedTensor> tensors;
  for (const auto& [name, entry] : tensors_) tensors[name] = {entry.place, entry.file};
  ASSIGN_OR_RETURN(const std::vector<PackedWeight> weights, PackedWeights(files_, tensors));
  for (const PackedWeight& weight : weights) {
    for (const std::string& name : NamesOf(weight)) tensors_.erase(name);
    TensorPlace place;
    place.name = weight.name;
    place.dtype = "F32";
    place.shape = weight.shape;
    place.bytes = static_cast<uint64_t>(weight.elements()) * sizeof(float);
    tensors_[weight.name] = {std::move(place), /*file=*/0, /*sha256=*/{},
                             std::make_shared<const PackedWeight>(weight)};
  }
  return absl::OkStatus();
}

const std::string& ModelFolder::PathOf(const Entry& tensor) const {
  return files_[tensor.file + (tensor.packed == nullptr ? 0 : tensor.packed->codes.file)].path();
}

absl::Status ModelFolder::ReadAny(const Entry& tensor, size_t piece_bytes,
                                  const FileSink& sink) const {
  if (tensor.packed == nullptr) {
    return files_[tensor.file].Read(tensor.place, piece_bytes, sink);
  }
  ASSIGN_OR_RETURN(const std::vector<float> values, Unpacked(*tensor.packed, files_, tensor.file));
  std::string_view rest(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(float));
  while (!rest.empty()) {
    RETURN_IF_ERROR(sink(rest.substr(0, piece_bytes)));
    rest.remove_prefix(std::min(piece_bytes, rest.size()));
  }
  return absl::OkStatus();
}

absl::Status ModelFolder::OpenShards(const std::string& text) {
  const std::string path = dir_ + "/" + kModelIndex;
  const auto index = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    RETURN_IF_ERROR(CheckNoStandIn(path, text));
    return absl::DataLossError(absl::StrCat(path, ": is no index with a weight_map"));
  }
  std::map<std::string, std::set<std::string>> by_shard;  // names of tensors
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || fs::path(shard.get<std::string>()).has_parent_path()) {
      return absl::DataLossError(absl::StrCat(path, ": ", tensor, " stands in no shard"));
    }
    by_shard[shard.get<std::string>()].insert(tensor);
  }
  for (const auto& [shard, named] : by_shard) RETURN_IF_ERROR(OpenShard(shard, named));
  return absl::OkStatus();
}

absl::Status ModelFolder::OpenShard(const std::string& shard, const std::set<std::string>& named) {
  const std::string path = dir_ + "/" + shard;
  ASSIGN_OR_RETURN(OpenTensorFile opened, OpenTensorFile::Open(path));
  files_.push_back(std::move(opened));
  std::set<std::string> missing = named;
  for (const TensorPlace& tensor : files_.back().header().tensors) missing.erase(tensor.name);
  for (const TensorPlace& tensor : files_.back().header().tensors) {
    const Entry entry = {tensor, files_.size() - 1};
    const auto [other, is_new] = tensors_.insert({tensor.name, entry});
    if (is_new) continue;
    ASSIGN_OR_RETURN(const bool are_equal, AreEqual(other->second, entry));
    if (are_equal) continue;
    return absl::DataLossError(absl::StrCat(path, ": ", tensor.name, " has other values than in ",
                                            files_[other->second.file].path(),
                                            ", want it once, or the same"));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, ": ", *missing.begin(), ", which the index names, is not there"));
}

void ModelFolder::Add(ModelFolder other, std::map<std::string, Entry> tensors) {
  const size_t first = files_.size();
  for (OpenTensorFile& file : other.files_) files_.push_back(std::move(file));
  for (auto& [name, entry] : tensors) {
    entry.file += first;
    tensors_[name] = std::move(entry);
  }
}

absl::Status ModelFolder::Read(const Entry& tensor, size_t piece_bytes,
                               const FileSink& sink) const {
  if (tensor.sha256.empty()) return ReadAny(tensor, piece_bytes, sink);
  Sha256Stream sum;
  RETURN_IF_ERROR(ReadAny(tensor, piece_bytes, [&](std::string_view piece) {
    sum.Add(piece);
    return sink(piece);
  }));
  const std::string digest = sum.Digest();
  if (digest == tensor.sha256) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(PathOf(tensor), ": ", tensor.place.name,
                                                    " has SHA-256 ", digest, ", want ",
                                                    tensor.sha256, ", as the run began with it"));
}

absl::StatusOr<bool> ModelFolder::AreEqual(const Entry& a, const Entry& b) const {
  if (a.place.dtype != b.place.dtype || a.place.shape != b.place.shape) return false;
  constexpr size_t kPieceBytes = size_t{1} << 20;
  const auto sha256 = [&](const Entry& entry) -> absl::StatusOr<std::string> {
    Sha256Stream sum;
    RETURN_IF_ERROR(Read(entry, kPieceBytes, [&](std::string_view piece) {
      sum.Add(piece);
      return absl::OkStatus();
    }));
    return sum.Digest();
  };
  ASSIGN_OR_RETURN(const std::string first, sha256(a));
  ASSIGN_OR_RETURN(const std::string second, sha256(b));
  return first == second;
}

std::string ShardName(int shard, int shards, std::string_view of) {
  return absl::StrFormat("%s-%05d-of-%05d.safetensors", of, shard + 1, shards);
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
