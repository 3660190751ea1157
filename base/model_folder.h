// The tensors of a model's folder, as Hugging Face's transformers and our runs write it: one
// safetensors file, or shards and an index that maps tensors to shards. Where both exist, the
// single file is the model, as transformers has it. Weights that bitsandbytes has packed into four
// bits (packed_weight.h) are shown as the F32 tensors that they stand for.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/packed_weight.h"
#include "base/tensor_file.h"

namespace thinwire {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kModelIndex[] = "model.safetensors.index.json";

// An open model folder; only the headers are in memory. The files stay open, so a run that replaces
// the folder meanwhile changes nothing here.
class ModelFolder {
 public:
  // Opens the tensors of the single file or of all shards, even those that the index does not name.
  // Errors name the file: one that is missing, unreadable or malformed, a shard without a tensor
  // that the index places there, or a tensor with different values in two shards.
  static absl::StatusOr<ModelFolder> Open(const std::string& dir);

  // Opens the tensors of these files of `dir`. DataLoss names a tensor that is in two of them.
  static absl::StatusOr<ModelFolder> OpenFiles(const std::string& dir,
                                               const std::vector<std::string>& files);

  // Describes a folder of another machine by what is known of its tensors, which cannot be read.
  static ModelFolder Elsewhere(std::string dir, const std::vector<TensorPlace>& tensors);

  const std::string& dir() const { return dir_; }
  bool is_elsewhere() const { return is_elsewhere_; }

  struct Entry {
    TensorPlace place;  // without its place in the file if it is packed
    size_t file =
        0;  // where it is, or the first of the files with which it was opened if it is packed
    std::string sha256 = {};  // of the bytes that Read gives, which it compares; empty: any
    std::shared_ptr<const PackedWeight> packed = nullptr;
  };
  // Returns the tensors by their names in the files.
  const std::map<std::string, Entry>& tensors() const { return tensors_; }

  // Adds tensors of another folder, by their names here, which must be new.
  void Add(ModelFolder other, std::map<std::string, Entry> tensors);
  // Leaves no others, by the names that they then have.
  void KeepOnly(std::map<std::string, Entry> tensors) { tensors_ = std::move(tensors); }

  // Returns whether both have the same type, shape and bytes.
  absl::StatusOr<bool> AreEqual(const Entry& a, const Entry& b) const;

  // Reads a tensor as OpenTensorFile::Read does; a packed one is held in memory meanwhile.
  // FailedPrecondition, once all of it was passed on, names the file and both digests if the tensor
  // is another than it must be.
  absl::Status Read(const Entry& tensor, size_t piece_bytes, const FileSink& sink) const;

 private:
  explicit ModelFolder(std::string dir) : dir_(std::move(dir)) {}
  // Shows weights instead of the tensors that they are packed in.
  absl::Status ShowPacked();
  // Returns the path of the file in which a tensor is, or its codes.
  const std::string& PathOf(const Entry& tensor) const;
  // Reads a tensor, whichever it must be.
  absl::Status ReadAny(const Entry& tensor, size_t piece_bytes, const FileSink& sink) const;
  absl::Status OpenSingle();
  absl::Status OpenShards(const std::string& index);
  absl::Status OpenShard(const std::string& shard, const std::set<std::string>& named);

  std::string dir_;
  bool is_elsewhere_ = false;
  std::vector<OpenTensorFile> files_;
  std::map<std::string, Entry> tensors_;
};

// Returns "model-00001-of-00004.safetensors" for shard 0 of 4; `of` is what it begins with.
std::string ShardName(int shard, int shards, std::string_view of = "model");

// Writes model.safetensors.index.json into `dir`; it maps the tensors in `files` of that folder to
// their files. Errors name the file that is no safetensors file, or the index.
absl::Status WriteModelIndex(const std::string& dir, const std::vector<std::string>& files);

}  // namespace thinwire
