// The tensors of a model's folder, as Hugging Face's transformers and our runs write it: one
// safetensors file, or shards and an index that says which tensor stands in which. Where both are
// there the one file is the model, as it is to transformers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/tensor_file.h"

namespace thinwire {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kModelIndex[] = "model.safetensors.index.json";

// Only headers are in memory. The files stay open: a run that replaces the folder meanwhile changes
// nothing here.
class ModelFolder {
 public:
  // All tensors of the file or of the shards, those that the index does not name too. Errors name
  // the file: one that is missing, may not be read or is malformed, a tensor that the index names
  // and its shard does not have; a tensor in two shards with different values.
  static absl::StatusOr<ModelFolder> Open(const std::string& dir);

  // The tensors of these files of `dir`, no name in two of them: DataLoss names one that is.
  static absl::StatusOr<ModelFolder> OpenFiles(const std::string& dir,
                                               const std::vector<std::string>& files);

  const std::string& dir() const { return dir_; }

  struct Entry {
    TensorPlace place;
    size_t file = 0;
  };
  // By name in the files.
  const std::map<std::string, Entry>& tensors() const { return tensors_; }

  // Whether both have the same type, shape and bytes.
  absl::StatusOr<bool> AreEqual(const Entry& a, const Entry& b) const;

  // As OpenTensorFile::Read.
  absl::Status Read(const Entry& tensor, size_t piece_bytes, const FileSink& sink) const {
    return files_[tensor.file].Read(tensor.place, piece_bytes, sink);
  }

 private:
  explicit ModelFolder(std::string dir) : dir_(std::move(dir)) {}
  absl::Status OpenSingle();
  absl::Status OpenShards(const std::string& index);
  absl::Status OpenShard(const std::string& shard, const std::set<std::string>& named);

  std::string dir_;
  std::vector<OpenTensorFile> files_;
  std::map<std::string, Entry> tensors_;
};

// Writes model.safetensors.index.json into `dir`: which tensor stands in which of these files of
// it. Errors name the file that is no safetensors file, or the index.
absl::Status WriteModelIndex(const std::string& dir, const std::vector<std::string>& files);

}  // namespace thinwire
