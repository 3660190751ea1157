#include "coordinator/checkpoint/manifest.h"

#include <climits>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/model_folder.h"
#include "base/status.h"
#include "coordinator/files/json.h"
#include "google/protobuf/util/json_util.h"

namespace thinwire {
namespace {

constexpr size_t kSha256Digits = 64;

bool IsSha256(const std::string& text) {
  if (text.size() != kSha256Digits) return false;
  for (const char digit : text) {
    if (!absl::ascii_isdigit(digit) && (digit < 'a' || digit > 'f')) return false;
  }
  return true;
}

absl::Status CheckPart(const CheckpointFile& file) {
  if (file.tensors().empty() == file.cut().empty()) {
    return absl::DataLossError("want either tensors or a cut");
  }
  if (file.cut().empty()) {
    if (file.direction().empty() && file.end().empty() && !file.has_level()) {
      return absl::OkStatus();
    }
    return absl::DataLossError("tensors with a direction, an end or a level, which cuts have");
  }
  if (file.direction() != "activation" && file.direction() != "gradient") {
    return absl::DataLossError(
        absl::StrCat("direction: \"", file.direction(), "\", want activation or gradient"));
  }
  if (file.end() != "sender" && file.end() != "receiver") {
    return absl::DataLossError(absl::StrCat("end: \"", file.end(), "\", want sender or receiver"));
  }
  return absl::OkStatus();
}

absl::Status CheckFile(const CheckpointFile& file) {
  RETURN_IF_ERROR(CheckFileName(file.name()));
  if (!IsSha256(file.sha256())) {
    return absl::DataLossError(absl::StrCat("sha256: \"", file.sha256(), "\", want ", kSha256Digits,
                                            " hexadecimal digits, lower case"));
  }
  return CheckPart(file);
}

absl::Status CheckFiles(const CheckpointManifest& manifest) {
  std::set<std::string> names;
  for (const CheckpointFile& file : manifest.files()) {
    absl::Status status = CheckFile(file);
    if (status.ok() && !names.insert(file.name()).second) {
      status = absl::DataLossError("comes twice");
    }
    RETURN_IF_ERROR(Annotated(status, absl::StrCat("files: \"", file.name(), "\"")));
  }
  return absl::OkStatus();
}

absl::Status Check(const CheckpointManifest& manifest) {
  if (manifest.format() != kManifestFormat && manifest.format() != kFormatWithEpochs) {
    return absl::DataLossError(absl::StrCat("format: ", manifest.format(), ", want ",
                                            kFormatWithEpochs, " or ", kManifestFormat));
  }
  const RunProgress& progress = manifest.progress();
  if (manifest.format() == kManifestFormat &&
      (!progress.has_epochs_kept() || progress.epochs_size() > 0)) {
    return absl::DataLossError(absl::StrCat("progress: ", progress.epochs_size(),
                                            " epochs, want none but epochs_kept in format ",
                                            kManifestFormat));
  }
  const std::pair<const char*, uint64_t> counts[] = {
      {"step", manifest.step()},
      {"epoch", manifest.epoch()},
      {"steps_per_epoch", manifest.steps_per_epoch()}};
  for (const auto& [name, count] : counts) {
    if (count == 0) return absl::DataLossError(absl::StrCat(name, ": 0, want at least 1"));
  }
  return CheckFiles(manifest);
}

}  // namespace

absl::Status CheckFileName(const std::string& name) {
  const bool is_plain = !name.empty() && name.size() <= NAME_MAX && name != "." && name != ".." &&
                        name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  if (!is_plain) return absl::DataLossError("want the name of a file in the checkpoint's folder");
  if (name == kManifestFile || name == kModelIndex) {
    return absl::DataLossError("is the checkpoint's own, want another name");
  }
  return absl::OkStatus();
}

std::string ManifestText(const CheckpointManifest& manifest) {
  return JsonText(ToExactJson(manifest), 2) + "\n";
}

absl::StatusOr<CheckpointManifest> ParseManifest(const std::string& text, const std::string& path) {
  if (text.size() > kMaxManifestBytes) {
    return absl::DataLossError(absl::StrCat(path, ": more than ", kMaxManifestBytes,
                                            " bytes, the most that a manifest has"));
  }
  CheckpointManifest manifest;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &manifest);
  if (!parsed.ok()) {
    return absl::DataLossError(
        absl::StrCat(path, ": is no checkpoint's manifest: ", parsed.message().ToString()));
  }
  RETURN_IF_ERROR(Annotated(Check(manifest), path));
  return manifest;
}

}  // namespace thinwire
