#include "coordinator/run/model_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/annotated.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/model_folder.h"
#include "base/status.h"
#include "config/checkpoint_config.h"
#include "config/local_paths.h"
#include "config/specs.h"
#include "coordinator/files/folders.h"
#include "data/vocabulary_files.h"

namespace thinwire {
namespace {

// Files that transformers, and this program, read to tokenize and to generate.
constexpr const char* kCopied[] = {kVocabularyFile,
                                   "vocab.json",
                                   "merges.txt",
                                   "vocab.txt",
                                   "tokenizer.json",
                                   "tokenizer.model",
                                   "tokenizer_config.json",
                                   "special_tokens_map.json",
                                   "added_tokens.json",
                                   "generation_config.json"};

using Which = ExportParametersRequest::Which;

absl::Status ReceiveShard(StageClient& stage, Which which, const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot open", errno);
  absl::Status status = stage.ExportParameters(
      which, [&](const FileChunk& chunk) { return WriteAll(file, path, chunk.data()); });
  if (status.ok() && fsync(file) != 0) status = FileError(path, "cannot sync", errno);
  if (close(file) != 0 && status.ok()) status = FileError(path, "cannot close", errno);
  return status;
}

// Adds the files that define the text's token ids, as far as they are on this machine.
absl::Status AddVocabulary(const Experiment& experiment, SideFiles* files) {
  ASSIGN_OR_RETURN(const KnownDataset data, KnownDatasetOf(experiment.data()));
  if (!data.is_text) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(experiment.data()));
  absl::StatusOr<SideFiles> vocabulary = VocabularyFiles(options);
  if (absl::IsNotFound(vocabulary.status())) return absl::OkStatus();
  RETURN_IF_ERROR(vocabulary.status());
  for (auto& [name, content] : *vocabulary) (*files)[name] = std::move(content);
  return absl::OkStatus();
}

// Adds the files in the folder of `init` that transformers reads beside the model.
absl::Status AddPublished(const Experiment& experiment, SideFiles* files) {
  // Where stages read the folder, this machine's cache need not have it.
  const absl::StatusOr<std::string> found = HubFolderOr(experiment.init());
  const std::string folder = found.ok() ? *found : experiment.init();
  for (const char* name : kCopied) {
    absl::StatusOr<std::string> content = ReadFile(folder + "/" + name);
    if (content.ok()) {
      (*files)[name] = *std::move(content);
    } else if (!absl::IsNotFound(content.status()) && !StagesReadInit(experiment)) {
      return content.status();
    }
  }
  return absl::OkStatus();
}

// Streams a shard of each stage that has such tensors into `dir`; returns the shards' names.
absl::StatusOr<std::vector<std::string>> Receive(Fleet* fleet, Which which,
                                                 const std::string& dir) {
  const char* const of = which == ExportParametersRequest::FROZEN ? "frozen" : "model";
  const auto name_of = [&](int stage) { return ShardName(stage, fleet->stages(), of); };
  RETURN_IF_ERROR(fleet->OnFirstRow([&](StageClient& stage) -> absl::Status {
    // Others of the row give the first one their parts.
    if (stage.carrier() > 0) {
      return stage.ExportParameters(which, [](const FileChunk&) { return absl::OkStatus(); });
    }
    return ReceiveShard(stage, which, dir + "/" + name_of(stage.stage()));
  }));
  std::vector<std::string> shards;
  for (int i = 0; i < fleet->stages(); ++i) {
    const std::string path = dir + "/" + name_of(i);
    ASSIGN_OR_RETURN(const OpenTensorFile shard, OpenTensorFile::Open(path));
    if (!shard.header().tensors.empty() || which == ExportParametersRequest::ALL) {
      shards.push_back(name_of(i));
    } else if (unlink(path.c_str()) != 0) {
      return FileError(path, "cannot remove", errno);
    }
  }
  return shards;
}

}  // namespace

absl::StatusOr<SideFiles> SideFilesOf(const Experiment& experiment) {
  ASSIGN_OR_RETURN(std::string config, CheckpointConfig(experiment));
  SideFiles files;
  if (!config.empty()) {
    files["config.json"] = std::move(config);
    if (experiment.has_init()) RETURN_IF_ERROR(AddPublished(experiment, &files));
  }
  RETURN_IF_ERROR(AddVocabulary(experiment, &files));
  return files;
}

absl::Status CheckModelVocabulary(const std::string& dir, const Experiment& experiment) {
  ASSIGN_OR_RETURN(const KnownDataset data, KnownDatasetOf(experiment.data()));
  if (!data.is_text) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(experiment.data()));
  const absl::Status status = CheckVocabulary(dir, options);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status CheckInitialVocabulary(const Experiment& experiment) {
  if (!experiment.has_init()) return absl::OkStatus();
  const absl::StatusOr<std::string> found = HubFolderOr(experiment.init());
  return Annotated(CheckModelVocabulary(found.ok() ? *found : experiment.init(), experiment),
                   "init");
}

absl::Status SavedModel::Save(Fleet* fleet) {
  return WriteFolder(dir_, [&](const std::string& path) { return Gather(fleet, path); });
}

bool SavedModel::LinkFrozen(const std::string& dir) const {
  const auto has_linked = [&](const std::string& shard) {
    const std::string here = dir_ + "/" + shard, there = dir + "/" + shard;
    return OpenTensorFile::Open(here).ok() && link(here.c_str(), there.c_str()) == 0;
  };
  if (std::all_of(frozen_.begin(), frozen_.end(), has_linked)) return true;
  for (const std::string& shard : frozen_) (void)unlink((dir + "/" + shard).c_str());
  return false;
}

absl::Status SavedModel::Gather(Fleet* fleet, const std::string& dir) {
  std::vector<std::string> shards;
  if (!has_frozen_) {
    ASSIGN_OR_RETURN(shards, Receive(fleet, ExportParametersRequest::ALL, dir));
  } else {
    ASSIGN_OR_RETURN(shards, Receive(fleet, ExportParametersRequest::TRAINED, dir));
    const bool has_them = !frozen_.empty() && LinkFrozen(dir);
    if (!has_them) {
      ASSIGN_OR_RETURN(frozen_, Receive(fleet, ExportParametersRequest::FROZEN, dir));
    }
    shards.insert(shards.end(), frozen_.begin(), frozen_.end());
  }
  RETURN_IF_ERROR(WriteModelIndex(dir, shards));
  for (const auto& [name, content] : beside_) {
    RETURN_IF_ERROR(ReplaceFile(dir + "/" + name, content));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
