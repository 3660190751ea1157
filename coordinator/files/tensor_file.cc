#include "coordinator/files/tensor_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "coordinator/files/file.h"

namespace thinwire {

absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::string read, ReadFile(path));
  auto bytes = std::make_unique<const std::string>(std::move(read));
  absl::StatusOr<Safetensors> contents = ParseSafetensors(*bytes);
  if (!contents.ok()) {
    return absl::DataLossError(absl::StrCat(path, ": ", contents.status().message()));
  }
  return TensorFile{std::move(bytes), *std::move(contents)};
}

absl::Status WriteTensorFile(const std::string& path, const Safetensors& contents) {
  return ReplaceFile(path, [&](const FileSink& sink) {
    return WriteSafetensors(contents, std::string_view::npos, sink);
  });
}

}  // namespace thinwire
