#include "coordinator/run/model_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "config/checkpoint_config.h"
#include "coordinator/files/model_folder.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

// What transformers reads to tokenize and to generate.
constexpr const char* kCopied[] = {"vocab.json",
                                   "merges.txt",
                                   "tokenizer.json",
                                   "tokenizer.model",
                                   "tokenizer_config.json",
                                   "special_tokens_map.json",
                                   "added_tokens.json",
                                   "generation_config.json"};

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
    ASSIGN_OR_RETURN(const OpenTensorFile shard, OpenTensorFile::Open(dir + "/" + name));
    for (const TensorPlace& tensor : shard.header().tensors) weight_map[tensor.name] = name;
    total_bytes += shard.data_bytes();
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_bytes}}},
                                {"weight_map", std::move(weight_map)}};
  return ReplaceFile(dir + "/" + kModelIndex, index.dump(2) + "\n");
}

absl::Status MakeEmptyFolder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) fs::create_directories(path, error);
  if (error) return FileError(path, "cannot make the folder", error.value());
  return absl::OkStatus();
}

// Gathers the files of a model in `dir`, which is empty.
absl::Status Gather(Fleet* fleet, const SideFiles& beside, const std::string& dir) {
  RETURN_IF_ERROR(fleet->OnAll([&](StageClient& stage) {
    return ReceiveShard(stage, dir + "/" + ShardName(stage.stage(), fleet->size()));
  }));
  RETURN_IF_ERROR(WriteIndex(dir, fleet->size()));
  for (const auto& [name, content] : beside) {
    RETURN_IF_ERROR(ReplaceFile(dir + "/" + name, content));
  }
  return absl::OkStatus();
}

// `dir` becomes what `with` is; what it was stands as `with` then, or nowhere.
absl::Status Replace(const std::string& dir, const std::string& with) {
  if (renameat2(AT_FDCWD, with.c_str(), AT_FDCWD, dir.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  const std::string old = dir + ".old";
  std::error_code error;
  if (errno == EINVAL || errno == ENOSYS) {  // a file system that does not exchange
    fs::remove_all(old, error);
    fs::rename(dir, old, error);  // if it is there
  } else if (errno != ENOENT) {
    return FileError(dir, "cannot replace the folder", errno);
  }
  fs::rename(with, dir, error);
  if (error) return FileError(dir, "cannot replace the folder", error.value());
  fs::remove_all(old, error);
  return absl::OkStatus();
}

}  // namespace

std::string ShardName(int shard, int shards) {
  return absl::StrFormat("model-%05d-of-%05d.safetensors", shard + 1, shards);
}

absl::StatusOr<SideFiles> SideFilesOf(const Experiment& experiment) {
  ASSIGN_OR_RETURN(std::string config, CheckpointConfig(experiment));
  SideFiles files;
  if (config.empty()) return files;
  files["config.json"] = std::move(config);
  if (!experiment.has_init()) return files;
  for (const char* name : kCopied) {
    absl::StatusOr<std::string> content = ReadFile(experiment.init() + "/" + name);
    if (content.ok()) {
      files[name] = *std::move(content);
    } else if (!absl::IsNotFound(content.status())) {
      return content.status();
    }
  }
  return files;
}

absl::Status SaveModel(Fleet* fleet, const SideFiles& beside, const std::string& dir) {
  const std::string temporary = dir + ".tmp";
  RETURN_IF_ERROR(MakeEmptyFolder(temporary));
  absl::Status status = Gather(fleet, beside, temporary);
  if (status.ok()) status = Replace(dir, temporary);
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  return status;
}

}  // namespace thinwire
