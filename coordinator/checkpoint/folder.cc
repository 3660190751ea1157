#include "coordinator/checkpoint/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/model_folder.h"
#include "base/owned_descriptor.h"
#include "base/sha256.h"
#include "base/status.h"
#include "coordinator/files/folders.h"
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

namespace fs = std::filesystem;

constexpr char kPrefix[] = "step-";
constexpr char kLeftPrefix[] = "left-";
// Suffixes of folders that are half written, half replaced or half removed.
constexpr const char* kHalfSuffixes[] = {".tmp", ".old"};

std::string NameOf(uint64_t step) { return absl::StrCat(kPrefix, step); }

// Returns the step of a checkpoint's name; nothing for another name.
std::optional<uint64_t> StepOf(const std::string& name) {
  absl::string_view digits = name;
  uint64_t step = 0;
  if (!absl::ConsumePrefix(&digits, kPrefix) || !absl::SimpleAtoi(digits, &step)) return {};
  if (name != NameOf(step)) return {};  // refuses "step-007"
  return step;
}

bool IsHalf(const std::string& name) {
  for (const char* suffix : kHalfSuffixes) {
    absl::string_view stem = name;
    if (absl::ConsumeSuffix(&stem, suffix) && StepOf(std::string(stem))) return true;
  }
  return false;
}

// Returns the names of the folders there; none if `path` does not exist.
absl::StatusOr<std::vector<std::string>> FoldersIn(const std::string& path) {
  std::error_code ignored;
  if (fs::status(path, ignored).type() == fs::file_type::not_found) {
    return std::vector<std::string>();
  }
  return NamesIn(
      path, [&ignored](const fs::directory_entry& entry) { return entry.is_directory(ignored); });
}

absl::Status RemoveFolder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return FileError(path, "cannot remove", error.value());
  return absl::OkStatus();
}

absl::Status RemoveCheckpoint(const std::string& checkpoint) {
  const std::string half = checkpoint + ".tmp";
  RETURN_IF_ERROR(RemoveFolder(half));
  std::error_code error;
  fs::rename(checkpoint, half, error);
  if (error) return FileError(checkpoint, "cannot remove", error.value());
  RETURN_IF_ERROR(SyncFolder(fs::path(checkpoint).parent_path().string()));
  return RemoveFolder(half);
}

// Makes the folder and its parents, and syncs them so that they survive a crash.
absl::Status MakeLastingFolder(const std::string& path) {
  ASSIGN_OR_RETURN(const bool is_new, MakeFolder(path));
  return is_new ? SyncFolder((fs::path(path) / "..").string()) : absl::OkStatus();
}

absl::Status VerifyFile(const std::string& path, const CheckpointFile& file) {
  RETURN_IF_ERROR(CheckRegular(path));
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (!error && bytes != file.bytes()) {
    return absl::DataLossError(absl::StrCat(path, ": ", bytes, " bytes, want ", file.bytes()));
  }
  Sha256Stream digest;
  const absl::Status status = ReadFile(path, [&](std::string_view piece) {
    digest.Add(piece);
    return absl::OkStatus();
  });
  if (absl::IsNotFound(status)) return absl::DataLossError(status.message());
  RETURN_IF_ERROR(status);
  if (const std::string sha256 = digest.Digest(); sha256 != file.sha256()) {
    return absl::DataLossError(
        absl::StrCat(path, ": has SHA-256 ", sha256, ", want ", file.sha256()));
  }
  return absl::OkStatus();
}

// Removes the link to the best checkpoint if it is of a step after `step`.
absl::Status LeaveBestAfter(const std::string& checkpoints, uint64_t step) {
  const std::optional<uint64_t> best = BestStep(checkpoints);
  if (!best || *best <= step) return absl::OkStatus();
  const std::string link = absl::StrCat(checkpoints, "/", kBest);
  std::error_code error;
  fs::remove(link, error);
  if (error) return FileError(link, "cannot remove", error.value());
  return SyncFolder(checkpoints);
}

absl::StatusOr<std::string> ReadManifestText(const std::string& path) {
  std::string text;
  const absl::Status status = ReadFile(path, [&](std::string_view piece) {
    text += piece;
    // Stops reading at a size that ParseManifest refuses.
    return text.size() > kMaxManifestBytes ? absl::OutOfRangeError("") : absl::OkStatus();
  });
  if (absl::IsNotFound(status)) return absl::DataLossError(status.message());
  if (!absl::IsOutOfRange(status)) RETURN_IF_ERROR(status);
  return text;
}

absl::Status VerifyFiles(const std::string& checkpoint, const CheckpointManifest& manifest) {
  for (const CheckpointFile& file : manifest.files()) {
    RETURN_IF_ERROR(VerifyFile(absl::StrCat(checkpoint, "/", file.name()), file));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EpochRecord>> EpochsOf(const std::string& checkpoint,
                                                  const CheckpointManifest& manifest) {
  return ReadEpochs(fs::path(checkpoint).parent_path().string(), manifest.progress().epochs_kept());
}

// Reads a manifest and its epochs, wherever its format keeps them.
absl::StatusOr<CheckpointManifest> ReadWhole(const std::string& checkpoint) {
  ASSIGN_OR_RETURN(CheckpointManifest manifest, ReadManifest(checkpoint));
  RETURN_IF_ERROR(VerifyFiles(checkpoint, manifest));
  if (manifest.format() == kFormatWithEpochs) return manifest;
  ASSIGN_OR_RETURN(const std::vector<EpochRecord> epochs, EpochsOf(checkpoint, manifest));
  *manifest.mutable_progress()->mutable_epochs() = {epochs.begin(), epochs.end()};
  return manifest;
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

std::string CheckpointPath(const std::string& checkpoints, uint64_t step) {
  return absl::StrCat(checkpoints, "/", NameOf(step));
}

absl::StatusOr<std::vector<uint64_t>> ListCheckpoints(const std::string& checkpoints) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, FoldersIn(checkpoints));
  std::vector<uint64_t> steps;
  for (const std::string& name : names) {
    if (const std::optional<uint64_t> step = StepOf(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::StatusOr<std::vector<uint64_t>> FindSteps(const std::string& checkpoints,
                                                std::optional<uint64_t> step) {
  ASSIGN_OR_RETURN(std::vector<uint64_t> steps, ListCheckpoints(checkpoints));
  if (steps.empty()) return absl::NotFoundError(checkpoints + ": has no checkpoint");
  if (!step) return steps;
  if (std::binary_search(steps.begin(), steps.end(), *step)) return std::vector<uint64_t>{*step};
  const auto name = [](std::string* text, uint64_t of) { absl::StrAppend(text, NameOf(of)); };
  return absl::NotFoundError(absl::StrCat(checkpoints, ": has no ", NameOf(*step), ", but ",
                                          absl::StrJoin(steps, ", ", name)));
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& checkpoint) {
  const std::string path = absl::StrCat(checkpoint, "/", kManifestFile);
  ASSIGN_OR_RETURN(const std::string text, ReadManifestText(path));
  ASSIGN_OR_RETURN(CheckpointManifest manifest, ParseManifest(text, path));
  const std::optional<uint64_t> step = StepOf(fs::path(checkpoint).filename().string());
  if (step && *step != manifest.step()) {
    return absl::DataLossError(absl::StrCat(path, ": step: ", manifest.step(), ", want ", *step,
                                            ", as the folder is named"));
  }
  return manifest;
}

absl::Status VerifyCheckpoint(const std::string& checkpoint, const CheckpointManifest& manifest) {
  RETURN_IF_ERROR(VerifyFiles(checkpoint, manifest));
  return EpochsOf(checkpoint, manifest).status();
}

absl::StatusOr<FoundCheckpoint> NewestCheckpoint(const std::string& checkpoints) {
  ASSIGN_OR_RETURN(std::vector<uint64_t> steps, ListCheckpoints(checkpoints));
  FoundCheckpoint found;
  for (; !steps.empty(); steps.pop_back()) {
    found.path = CheckpointPath(checkpoints, steps.back());
    absl::StatusOr<CheckpointManifest> manifest = ReadWhole(found.path);
    if (manifest.ok()) {
      found.manifest = *std::move(manifest);
      return found;
    }
    found.skipped.emplace_back(manifest.status().message());
  }
  if (found.skipped.empty()) return absl::NotFoundError(checkpoints + ": has no checkpoint");
  return absl::DataLossError(absl::StrCat(checkpoints, ": has no checkpoint that is whole\n  ",
                                          absl::StrJoin(found.skipped, "\n  ")));
}

absl::StatusOr<FoundCheckpoint> CheckpointOfStep(const std::string& checkpoints, uint64_t step) {
  RETURN_IF_ERROR(FindSteps(checkpoints, step).status());
  FoundCheckpoint found;
  found.path = CheckpointPath(checkpoints, step);
  ASSIGN_OR_RETURN(found.manifest, ReadWhole(found.path));
  found.is_chosen = true;
  return found;
}

absl::Status SetBest(const std::string& checkpoints, uint64_t step) {
  const std::string link = absl::StrCat(checkpoints, "/", kBest), half = link + ".tmp";
  std::error_code error;
  fs::remove(half, error);
  fs::create_symlink(NameOf(step), half, error);
  if (!error) fs::rename(half, link, error);
  if (error) return FileError(link, "cannot make", error.value());
  return SyncFolder(checkpoints);
}

std::optional<uint64_t> BestStep(const std::string& checkpoints) {
  std::error_code error;
  const fs::path target = fs::read_symlink(absl::StrCat(checkpoints, "/", kBest), error);
  return error ? std::nullopt : StepOf(target.string());
}

absl::Status PruneCheckpoints(const std::string& checkpoints, uint32_t keep) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, FoldersIn(checkpoints));
  for (const std::string& name : names) {
    if (IsHalf(name)) RETURN_IF_ERROR(RemoveFolder(absl::StrCat(checkpoints, "/", name)));
  }
  ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, ListCheckpoints(checkpoints));
  const std::optional<uint64_t> best = BestStep(checkpoints);
  for (size_t i = 0; i + keep < steps.size(); ++i) {
    if (steps[i] == best) continue;
    RETURN_IF_ERROR(RemoveCheckpoint(CheckpointPath(checkpoints, steps[i])));
  }
  return absl::OkStatus();
}

absl::Status RemoveCheckpointsAfter(const std::string& checkpoints, uint64_t step) {
  ASSIGN_OR_RETURN(std::vector<uint64_t> steps, ListCheckpoints(checkpoints));
  for (; !steps.empty() && steps.back() > step; steps.pop_back()) {
    RETURN_IF_ERROR(RemoveCheckpoint(CheckpointPath(checkpoints, steps.back())));
  }
  return LeaveBestAfter(checkpoints, step);
}

absl::StatusOr<std::string> SetAsideCheckpointsAfter(const std::string& checkpoints,
                                                     uint64_t step) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> steps, ListCheckpoints(checkpoints));
  const auto later = std::upper_bound(steps.begin(), steps.end(), step);
  if (later == steps.end()) return std::string();
  std::string aside = absl::StrCat(checkpoints, "/", kLeftPrefix, step);
  std::error_code error;
  for (int i = 2; fs::exists(aside, error); ++i) {
    aside = absl::StrCat(checkpoints, "/", kLeftPrefix, step, "-", i);
  }
  RETURN_IF_ERROR(MakeLastingFolder(aside));
  if (fs::exists(PathIn(checkpoints), error)) {
    fs::copy_file(PathIn(checkpoints), PathIn(aside), error);
    if (error) return FileError(PathIn(aside), "cannot write", error.value());
  }
  for (auto at = later; at != steps.end(); ++at) {
    fs::rename(CheckpointPath(checkpoints, *at), CheckpointPath(aside, *at), error);
    if (error) return FileError(CheckpointPath(checkpoints, *at), "cannot move", error.value());
  }
  RETURN_IF_ERROR(LeaveBestAfter(checkpoints, step));
  RETURN_IF_ERROR(SyncFolder(aside));
  RETURN_IF_ERROR(SyncFolder(checkpoints));
  return aside;
}

CheckpointWriter::CheckpointWriter(std::string checkpoints, uint64_t step)
    : checkpoints_(std::move(checkpoints)),
      step_(step),
      temporary_(CheckpointPath(checkpoints_, step) + ".tmp") {}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Begin(
    const std::string& checkpoints, uint64_t step) {
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(checkpoints, step));
  RETURN_IF_ERROR(MakeLastingFolder(checkpoints));
  RETURN_IF_ERROR(RemoveFolder(writer->temporary_));
  RETURN_IF_ERROR(MakeLastingFolder(writer->temporary_));
  return writer;
}

CheckpointWriter::~CheckpointWriter() {
  if (!committed_) RemoveFolder(temporary_).IgnoreError();
}

absl::Status CheckpointWriter::Write(
    CheckpointFile* file, const std::function<absl::Status(const FileSink&)>& write) const {
  const std::string path = absl::StrCat(temporary_, "/", file->name());
  const absl::Status name = CheckFileName(file->name());
  if (!name.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", name.message()));
  const int opened = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (opened < 0) return FileError(path, "cannot make", errno);
  Sha256Stream digest;
  uint64_t bytes = 0;
  absl::Status status = write([&](std::string_view piece) {
    digest.Add(piece);
    bytes += piece.size();
    return WriteAll(opened, path, piece);
  });
  if (status.ok() && fsync(opened) != 0) status = FileError(path, "cannot sync", errno);
  if (close(opened) != 0 && status.ok()) status = FileError(path, "cannot close", errno);
  if (!status.ok()) {
    unlink(path.c_str());
    return status;
  }
  file->set_bytes(bytes);
  file->set_sha256(digest.Digest());
  return absl::OkStatus();
}

absl::Status CheckpointWriter::WriteRest(const CheckpointManifest& manifest,
                                         const std::map<std::string, std::string>& beside) const {
  for (const auto& one : beside) {
    CheckpointFile file;  // its digest is not needed
    file.set_name(one.first);
    RETURN_IF_ERROR(Write(&file, [&](const FileSink& sink) { return sink(one.second); }));
  }
  std::vector<std::string> model;
  for (const CheckpointFile& file : manifest.files()) {
    if (file.tensors() == kModelTensors) model.push_back(file.name());
  }
  RETURN_IF_ERROR(WriteModelIndex(temporary_, model));
  const std::string path = absl::StrCat(temporary_, "/", kManifestFile);
  const std::string text = ManifestText(manifest);
  RETURN_IF_ERROR(ParseManifest(text, path).status());  // what is written must be readable
  if (manifest.step() != step_) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": step: ", manifest.step(), ", want ", step_));
  }
  RETURN_IF_ERROR(ReplaceFile(path, text));
  return SyncFolder(temporary_);
}

absl::Status CheckpointWriter::Commit(const CheckpointManifest& manifest,
                                      const std::map<std::string, std::string>& beside) {
  RETURN_IF_ERROR(WriteRest(manifest, beside));
  RETURN_IF_ERROR(ReplaceFolder(CheckpointPath(checkpoints_, step_), temporary_));
  RETURN_IF_ERROR(SyncFolder(checkpoints_));
  RETURN_IF_ERROR(RemoveFolder(temporary_));  // a checkpoint of the same step, if there was one
  committed_ = true;
  return absl::OkStatus();
}

}  // namespace thinwire
