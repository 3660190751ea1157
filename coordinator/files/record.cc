#include "coordinator/files/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/safetensors.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "coordinator/files/folders.h"
#include "coordinator/files/json.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Names of a run's files. Without the mark beside them they may be anybody's.
constexpr const char* kEntries[] = {"captures",        "checkpoints",
                                    "model",           "model.old",
                                    "model.tmp",       "logs",
                                    "metrics.jsonl",   "traffic.jsonl",
                                    "targets.json",    "targets.json.tmp",
                                    "trace.json",      "trace.json.tmp",
                                    "summary.json",    "summary.json.tmp",
                                    "experiment.yaml", "experiment.yaml.tmp",
                                    ".thinwire.lease", ".thinwire.lease.tmp"};
constexpr char kMark[] = ".thinwire";
constexpr char kLock[] = ".thinwire.lock";
constexpr char kMarkText[] =
    "This folder holds a run of Thinwire. While this file is here, `thinwire run --overwrite` may\n"
    "remove the files and folders of that run.\n";

bool Holds(const std::string& dir, const char* entry) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(dir + "/" + entry, ignored));
}

// AlreadyExists unless a run may be written to `dir`. With `overwrite` an older run may be there.
absl::Status CheckFree(const std::string& dir, bool overwrite) {
  const auto* taken = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [&](const char* entry) { return Holds(dir, entry); });
  if (taken == std::end(kEntries)) return absl::OkStatus();
  if (!Holds(dir, kMark)) {
    return absl::AlreadyExistsError(absl::StrCat(
        dir, ": has ", *taken, " but no ", kMark,
        ", the mark of a run's folder, so nothing in it is replaced; give another folder with "
        "--out, or remove this one by hand"));
  }
  if (overwrite) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      dir,
      ": a run is already recorded here; give --resume to go on with it, --overwrite to replace "
      "it, or another folder with --out"));
}

// AlreadyExists if another process writes a run there.
absl::StatusOr<std::unique_ptr<FileLock>> LockFolder(const std::string& dir) {
  absl::StatusOr<std::unique_ptr<FileLock>> lock = FileLock::Take(dir + "/" + kLock);
  if (!absl::IsAlreadyExists(lock.status())) return lock;
  return absl::AlreadyExistsError(
      absl::StrCat(dir, ": another process writes a run here (it holds ", kLock,
                   "); end it or wait for its end, or give another folder with --out"));
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

// Returns a line with {"type": type, "time": now} before `fields`.
std::string Line(const char* type, const Json& fields) {
  const std::string now =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  Json line = {{"type", type}, {"time", now}};
  for (const auto& [key, value] : fields.items()) line[key] = value;
  return JsonText(line) + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<JsonLines>> JsonLines::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot open", errno);
  return std::unique_ptr<JsonLines>(new JsonLines(path, file));
}

absl::Status JsonLines::Append(const std::string& lines) {
  struct stat ours, there;
  const bool is_there = fstat(file_.get(), &ours) == 0 && stat(path_.c_str(), &there) == 0 &&
                        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  // Writing to a file that has been removed succeeds, but the data is lost.
  if (!is_there) {
    return absl::DataLossError(
        absl::StrCat(path_, ": was removed or replaced while the run wrote to it"));
  }
  return WriteAll(file_.get(), path_, lines);
}

absl::StatusOr<uint64_t> JsonLines::Bytes() const {
  struct stat ours;
  if (fstat(file_.get(), &ours) == 0) return static_cast<uint64_t>(ours.st_size);
  return FileError(path_, "cannot look at", errno);
}

absl::Status JsonLines::Cut(uint64_t bytes) {
  ASSIGN_OR_RETURN(uint64_t size, Bytes());
  size = std::min(size, bytes);
  // A crash of the machine may have cut off the end of a line.
  for (char last = 0; size > 0; --size) {
    if (pread(file_.get(), &last, 1, static_cast<off_t>(size - 1)) != 1) {
      return FileError(path_, "cannot read", errno);
    }
    if (last == '\n') break;
  }
  if (ftruncate(file_.get(), static_cast<off_t>(size)) == 0) return absl::OkStatus();
  return FileError(path_, "cannot cut off", errno);
}

std::string UtcNow() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
}

absl::Status CheckRecorded(const std::string& dir) {
  const absl::Status is_there = ReadFile(dir + "/experiment.yaml").status();
  if (is_there.ok()) return is_there;
  return absl::NotFoundError(absl::StrCat(dir, ": no run is recorded here: ", is_there.message()));
}

absl::StatusOr<std::unique_ptr<RunRecord>> RunRecord::Create(const std::string& dir,
                                                             bool overwrite) {
  RETURN_IF_ERROR(CheckFree(dir, overwrite));
  RETURN_IF_ERROR(MakeFolder(dir).status());
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, LockFolder(dir));
  // Checks again: another process may have written a run and ended since the first check.
  RETURN_IF_ERROR(CheckFree(dir, overwrite));
  // An existing mark stays, so that a full disk does not keep a run from being replaced.
  if (!Holds(dir, kMark)) RETURN_IF_ERROR(ReplaceFile(dir + "/" + kMark, kMarkText));
  RETURN_IF_ERROR(RemoveRun(dir));
  return Make(dir, std::move(lock));
}

absl::StatusOr<std::unique_ptr<RunRecord>> RunRecord::Open(const std::string& dir) {
  for (const char* entry : {kMark, "experiment.yaml"}) {
    if (Holds(dir, entry)) continue;
    return absl::NotFoundError(
        absl::StrCat(dir, ": no run to go on with is recorded here: there is no ", entry));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, LockFolder(dir));
  return Make(dir, std::move(lock));
}

absl::StatusOr<std::unique_ptr<RunRecord>> RunRecord::Make(const std::string& dir,
                                                           std::unique_ptr<FileLock> lock) {
  RETURN_IF_ERROR(MakeFolder(dir + "/logs").status());
  std::unique_ptr<RunRecord> record(new RunRecord(dir, std::move(lock)));
  ASSIGN_OR_RETURN(record->metrics_, JsonLines::Open(dir + "/metrics.jsonl"));
  ASSIGN_OR_RETURN(record->traffic_, JsonLines::Open(dir + "/traffic.jsonl"));
  return record;
}

absl::Status RunRecord::Measure(RunProgress* progress) const {
  ASSIGN_OR_RETURN(const uint64_t metrics, metrics_->Bytes());
  ASSIGN_OR_RETURN(const uint64_t traffic, traffic_->Bytes());
  progress->set_metrics_bytes(metrics);
  progress->set_traffic_bytes(traffic);
  return absl::OkStatus();
}

absl::Status RunRecord::Cut(const RunProgress& progress) {
  RETURN_IF_ERROR(metrics_->Cut(progress.metrics_bytes()));
  return traffic_->Cut(progress.traffic_bytes());
}

absl::Status RunRecord::WriteExperiment(const std::string& yaml) {
  return ReplaceFile(dir_ + "/experiment.yaml", yaml);
}

absl::Status RunRecord::Append(const StepRecord& step) {
  return metrics_->Append(Line("step", ToJson(step)));
}

absl::Status RunRecord::Append(const EvaluationRecord& evaluation) {
  return metrics_->Append(Line("evaluation", ToJson(evaluation)));
}

absl::Status RunRecord::Append(const EpochRecord& epoch) {
  return metrics_->Append(Line("epoch", ToJson(epoch)));
}

absl::Status RunRecord::Append(const std::vector<TrafficRecord>& traffic) {
  std::string lines;
  for (const TrafficRecord& record : traffic) lines += JsonText(ToJson(record)) + "\n";
  return traffic_->Append(lines);
}

absl::Status RunRecord::WriteCapture(uint64_t step, const std::vector<std::string>& files) {
  Safetensors all;
  for (size_t stage = 0; stage < files.size(); ++stage) {
    const absl::StatusOr<Safetensors> one = ParseSafetensors(files[stage]);
    if (!one.ok()) {
      return absl::DataLossError(absl::StrCat("stage ", stage, ": its capture of step ", step, ": ",
                                              one.status().message()));
    }
    all.tensors.insert(all.tensors.end(), one->tensors.begin(), one->tensors.end());
  }
  std::sort(all.tensors.begin(), all.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  all.metadata["step"] = absl::StrCat(step);
  RETURN_IF_ERROR(MakeFolder(dir_ + "/captures").status());
  return WriteTensorFile(absl::StrCat(dir_, "/captures/step-", step, ".safetensors"), all);
}

absl::Status RunRecord::WriteTrace(const std::function<absl::Status(const FileSink&)>& write) {
  return ReplaceFile(dir_ + "/trace.json", write);
}

absl::Status RunRecord::WriteSummary(const Summary& summary) {
  return ReplaceFile(dir_ + "/summary.json", JsonText(ToJson(summary), 2) + "\n");
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
  return ReplaceFile(dir_ + "/targets.json", JsonText(targets, 2) + "\n");
}

}  // namespace thinwire
