#include "coordinator/tensor_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "coordinator/file.h"

namespace thinwire {

absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileError(path, "cannot open", errno);
  auto bytes = std::make_unique<std::string>(std::istreambuf_iterator<char>(file),
                                             std::istreambuf_iterator<char>());
  if (file.bad()) return FileError(path, "cannot read", EIO);
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
