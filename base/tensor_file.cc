#include "base/tensor_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/stand_in.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Longest header that readers of the format accept.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

absl::Status Malformed(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

}  // namespace

absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::string read, ReadFile(path));
  auto bytes = std::make_unique<const std::string>(std::move(read));
  absl::StatusOr<Safetensors> contents = ParseSafetensors(*bytes);
  if (!contents.ok()) {
    RETURN_IF_ERROR(CheckNoStandIn(path, *bytes));
    return Malformed(path, contents.status().message());
  }
  return TensorFile{std::move(bytes), *std::move(contents)};
}

absl::StatusOr<OpenTensorFile> OpenTensorFile::Open(const std::string& path) {
  RETURN_IF_ERROR(CheckRegular(path));
  std::FILE* const opened = std::fopen(path.c_str(), "rbe");
  if (opened == nullptr) return FileError(path, "cannot open", errno);
  OpenTensorFile file(path, opened);
  const absl::Status read = file.ReadHeader();
  if (!read.ok()) return StandInOr(path, read);
  return file;
}

absl::Status OpenTensorFile::ReadHeader() {
  struct stat about;
  if (fstat(fileno(file_.get()), &about) != 0) return FileError(path_, "cannot read", errno);
  if (S_ISDIR(about.st_mode)) return FileError(path_, "cannot read", EISDIR);
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size < kSafetensorsLengthBytes) {
    return Malformed(path_, absl::StrCat("safetensors: ", size, " bytes, want at least ",
                                         kSafetensorsLengthBytes));
  }
  std::string bytes;
  RETURN_IF_ERROR(ReadAt(0, kSafetensorsLengthBytes, &bytes));
  const uint64_t header_bytes = SafetensorsHeaderBytes(bytes);
  const uint64_t behind = size - kSafetensorsLengthBytes;
  if (header_bytes > std::min(behind, kMaxHeaderBytes)) {
    return Malformed(path_, absl::StrCat("safetensors: a header of ", header_bytes, " bytes, ",
                                         behind, " there, want at most ", kMaxHeaderBytes));
  }
  RETURN_IF_ERROR(ReadAt(kSafetensorsLengthBytes, header_bytes, &bytes));
  data_at_ = kSafetensorsLengthBytes + header_bytes;
  data_bytes_ = size - data_at_;
  absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(bytes, data_bytes_);
  if (!header.ok()) return Malformed(path_, header.status().message());
  header_ = *std::move(header);
  return absl::OkStatus();
}

absl::Status OpenTensorFile::ReadAt(uint64_t at, size_t size, std::string* bytes) const {
  bytes->resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t read = pread(fileno(file_.get()), bytes->data() + done, size - done,
                               static_cast<off_t>(at + done));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return FileError(path_, "cannot read", errno);
    if (read == 0) {
      return Malformed(
          path_, absl::StrCat("ends at byte ", at + done, ", it was longer when it was opened"));
    }
    done += static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

absl::Status OpenTensorFile::Read(const TensorPlace& tensor, size_t piece_bytes,
                                  const FileSink& sink) const {
  std::string piece;
  for (uint64_t done = 0; done < tensor.bytes; done += piece.size()) {
    const size_t size = std::min<uint64_t>(piece_bytes, tensor.bytes - done);
    RETURN_IF_ERROR(ReadAt(data_at_ + tensor.begin + done, size, &piece));
    RETURN_IF_ERROR(sink(piece));
  }
  return absl::OkStatus();
}

absl::Status WriteTensorFile(const std::string& path, const Safetensors& contents) {
  return ReplaceFile(path, [&](const FileSink& sink) {
    return WriteSafetensors(contents, std::string_view::npos, sink);
  });
}

}  // namespace thinwire
