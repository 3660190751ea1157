#include "coordinator/run/model_files.h"

#include <fcntl.h>
#include <unistd.h>

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

absl::Status ReceiveShard(StageClient& stage, const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot open", errno);
  absl::Status status = stage.ExportParameters(
      [&](const FileChunk& chunk) { return WriteAll(file, path, chunk.data()); });
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

// Gathers the files of a model in the empty folder `dir`.
absl::Status Gather(Fleet* fleet, const SideFiles& beside, const std::string& dir) {
  std::vector<std::string> shards;
  for (int i = 0; i < fleet->stages(); ++i) shards.push_back(ShardName(i, fleet->stages()));
  RETURN_IF_ERROR(fleet->OnFirstRow([&](StageClient& stage) -> absl::Status {
    // Others of the row give the first one their parts.
    if (stage.carrier() > 0) {
      return stage.ExportParameters([](const FileChunk&) { return absl::OkStatus(); });
    }
    return ReceiveShard(stage, dir + "/" + shards[static_cast<size_t>(stage.stage())]);
  }));
  RETURN_IF_ERROR(WriteModelIndex(dir, shards));
  for (const auto& [name, content] : beside) {
    RETURN_IF_ERROR(ReplaceFile(dir + "/" + name, content));
  }
  return absl::OkStatus();
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

absl::Status SaveModel(Fleet* fleet, const SideFiles& beside, const std::string& dir) {
  return WriteFolder(dir, [&](const std::string& path) { return Gather(fleet, beside, path); });
}

}  // namespace thinwire
