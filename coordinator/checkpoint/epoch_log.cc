#include "coordinator/checkpoint/epoch_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/owned_descriptor.h"
#include "base/status.h"
#include "coordinator/files/json.h"
#include "google/protobuf/util/json_util.h"

namespace thinwire {
namespace {

std::string PathIn(const std::string& checkpoints) {
  return absl::StrCat(checkpoints, "/", kEpochLog);
}

absl::Status TooShort(const std::string& path, uint64_t bytes, const EpochsKept& kept) {
  return absl::DataLossError(absl::StrCat(path, ": ", bytes, " bytes, want at least ", kept.bytes(),
                                          ", the checkpoint's ", kept.epochs(), " epochs"));
}

}  // namespace

EpochLog::EpochLog(const std::string& checkpoints, EpochsKept kept)
    : folder_(checkpoints), path_(PathIn(checkpoints)), kept_(std::move(kept)) {}

absl::Status EpochLog::Append(const std::vector<EpochRecord>& epochs) {
  if (epochs.empty()) return absl::OkStatus();
  std::string lines;
  for (const EpochRecord& epoch : epochs)
    absl::StrAppend(&lines, JsonText(ToExactJson(epoch)), "\n");
  const OwnedDescriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) return FileError(path_, "cannot open", errno);
  RETURN_IF_ERROR(Write(file.get(), lines));
  // The file may be new, so its name must reach the disk too.
  if (kept_.bytes() == 0) RETURN_IF_ERROR(SyncFolder(folder_));
  kept_.set_epochs(kept_.epochs() + epochs.size());
  kept_.set_bytes(kept_.bytes() + lines.size());
  kept_.set_crc32c(ExtendCrc32c(kept_.crc32c(), lines.data(), lines.size()));
  return absl::OkStatus();
}

absl::Status EpochLog::Write(int file, const std::string& lines) const {
  struct stat about;
  if (fstat(file, &about) != 0) return FileError(path_, "cannot look at", errno);
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (bytes < kept_.bytes()) return TooShort(path_, bytes, kept_);
  if (ftruncate(file, static_cast<off_t>(kept_.bytes())) != 0) {
    return FileError(path_, "cannot cut off", errno);
  }
  RETURN_IF_ERROR(WriteAll(file, path_, lines));
  return fdatasync(file) == 0 ? absl::OkStatus() : FileError(path_, "cannot sync", errno);
}

absl::StatusOr<std::vector<EpochRecord>> ReadEpochs(const std::string& checkpoints,
                                                    const EpochsKept& kept) {
  std::vector<EpochRecord> epochs;
  if (kept.bytes() == 0 && kept.epochs() == 0) return epochs;
  const std::string path = PathIn(checkpoints);
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return TooShort(path, 0, kept);
  RETURN_IF_ERROR(text.status());
  if (text->size() < kept.bytes()) return TooShort(path, text->size(), kept);
  text->resize(kept.bytes());
  if (const uint32_t crc = Crc32c(text->data(), text->size()); crc != kept.crc32c()) {
    return absl::DataLossError(absl::StrCat(path, ": its first ", kept.bytes(),
                                            " bytes have CRC-32C ", crc, ", want ", kept.crc32c()));
  }
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const auto parsed = google::protobuf::util::JsonStringToMessage({line.data(), line.size()},
                                                                    &epochs.emplace_back());
    if (!parsed.ok()) {
      return absl::DataLossError(
          absl::StrCat(path, ": line ", epochs.size(), ": ", std::string(parsed.message())));
    }
  }
  if (epochs.size() == kept.epochs()) return epochs;
  return absl::DataLossError(
      absl::StrCat(path, ": ", epochs.size(), " epochs, want ", kept.epochs()));
}

}  // namespace thinwire
