#include "coordinator/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "coordinator/file.h"
#include "coordinator/json.h"
#include "coordinator/tensor_file.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kEntries[] = {"experiment.yaml", "metrics.jsonl", "summary.json",
                                    "targets.json",    "logs",          "model",
                                    "captures"};

bool HoldsARun(const std::string& dir) {
  std::error_code ignored;
  for (const char* entry : kEntries) {
    if (fs::exists(fs::symlink_status(dir + "/" + entry, ignored))) return true;
  }
  return false;
}

absl::Status RemoveRun(const std::string& dir) {
  for (const char* entry : kEntries) {
    const std::string path = dir + "/" + entry;
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return FileError(path, "cannot remove", error.value());
  }
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return FileError(path, "cannot make the folder", error.value());
  return absl::OkStatus();
}

// `fields` behind {"type": type}.
std::string Line(const char* type, const Json& fields) {
  Json line = {{"type", type}};
  for (const auto& [key, value] : fields.items()) line[key] = value;
  return line.dump() + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunRecord>> RunRecord::Create(const std::string& dir,
                                                             bool overwrite) {
  if (HoldsARun(dir)) {
    if (!overwrite) {
      return absl::AlreadyExistsError(absl::StrCat(
          dir,
          ": a run is already recorded here; give --overwrite to replace it, or another "
          "folder with --out"));
    }
    RETURN_IF_ERROR(RemoveRun(dir));
  }
  RETURN_IF_ERROR(MakeFolder(dir + "/logs"));
  const std::string path = dir + "/metrics.jsonl";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot open", errno);
  return std::unique_ptr<RunRecord>(new RunRecord(dir, file));
}

RunRecord::~RunRecord() { close(metrics_); }

absl::Status RunRecord::AppendLine(const std::string& line) {
  return WriteAll(metrics_, dir_ + "/metrics.jsonl", line);
}

absl::Status RunRecord::WriteExperiment(const std::string& yaml) {
  return ReplaceFile(dir_ + "/experiment.yaml", yaml);
}

absl::Status RunRecord::Append(const StepRecord& step) {
  return AppendLine(Line("step", ToJson(step)));
}

absl::Status RunRecord::Append(const EpochRecord& epoch) {
  return AppendLine(Line("epoch", ToJson(epoch)));
}

absl::Status RunRecord::WriteCapture(uint64_t step, const std::vector<std::string>& files) {
  Safetensors all;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const Safetensors one, ParseSafetensors(file));
    all.tensors.insert(all.tensors.end(), one.tensors.begin(), one.tensors.end());
  }
  std::sort(all.tensors.begin(), all.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  all.metadata["step"] = absl::StrCat(step);
  RETURN_IF_ERROR(MakeFolder(dir_ + "/captures"));
  return WriteTensorFile(absl::StrCat(dir_, "/captures/step-", step, ".safetensors"), all);
}

absl::Status RunRecord::WriteSummary(const Summary& summary) {
  return ReplaceFile(dir_ + "/summary.json", ToJson(summary).dump(2) + "\n");
}

absl::Status RunRecord::WriteTargets(const std::string& coordinator,
                                     const std::vector<std::string>& stages) {
  Json targets = Json::array();
  targets.push_back({{"targets", {coordinator}}, {"labels", {{"job", "coordinator"}}}});
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].empty()) continue;
    targets.push_back(
        {{"targets", {stages[i]}}, {"labels", {{"job", "stage"}, {"stage", std::to_string(i)}}}});
  }
  return ReplaceFile(dir_ + "/targets.json", targets.dump(2) + "\n");
}

}  // namespace thinwire
