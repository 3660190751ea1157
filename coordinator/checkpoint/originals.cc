#include "coordinator/checkpoint/originals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compress/file_numbers.h"

namespace thinwire {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

absl::Status CheckEntry(const std::string& dir, const TensorPlace& is, const FileTensor& want) {
  if (IsFloat(is.dtype) && is.shape == want.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(dir, ": ", is.name, " is ", is.dtype, " [", absl::StrJoin(is.shape, ", "),
                   "], want F32, F16 or BF16 [", absl::StrJoin(want.shape, ", "), "]"));
}

}  // namespace

absl::StatusOr<Originals> Originals::Open(const std::string& dir,
                                          const std::vector<FileTensor>& tensors) {
  absl::StatusOr<ModelFolder> folder = ModelFolder::Open(dir);
  if (!folder.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.status().message(), ": want the folder that the run started from"));
  }
  std::map<std::string, ModelFolder::Entry> there;
  for (const auto& [name, entry] : folder->tensors()) {
    for (std::string& meaning : MeaningsOf(name)) there.emplace(std::move(meaning), entry);
  }
  Originals originals(*std::move(folder));
  for (const FileTensor& tensor : tensors) {
    const auto found = there.find(tensor.name);
    if (found == there.end()) {
      return absl::InvalidArgumentError(absl::StrCat(dir, ": has no ", tensor.name));
    }
    RETURN_IF_ERROR(CheckEntry(dir, found->second.place, tensor));
    originals.entries_[tensor.name] = found->second;
  }
  return originals;
}

absl::StatusOr<std::vector<float>> Originals::Values(const std::string& name) const {
  const ModelFolder::Entry& entry = entries_.at(name);
  std::string bytes;
  bytes.reserve(entry.place.bytes);
  RETURN_IF_ERROR(folder_.Read(entry, kReadBytes, [&bytes](std::string_view piece) {
    bytes += piece;
    return absl::OkStatus();
  }));
  return Widened(entry.place.dtype, bytes);
}

}  // namespace thinwire
