#include "coordinator/serve/queue.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "config/experiment.h"
#include "coordinator/files/folders.h"
#include "coordinator/files/json.h"
#include "coordinator/files/record.h"
#include "coordinator/files/summary.h"
#include "coordinator/sweep/live_table.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

constexpr int kDone = 0, kInterrupted = 130;  // exit codes of `thinwire run`

// Returns whether it is a run's file. Half-written files of a killed server have another extension.
bool IsOfRun(const fs::directory_entry& entry) { return entry.path().extension() == ".json"; }

constexpr const char *kWaits = "waits", *kRuns = "runs", *kIsDone = "done", *kFailed = "failed",
                     *kCancelled = "cancelled";
constexpr const char* kStates[] = {kWaits, kRuns, kIsDone, kFailed, kCancelled};

const char* StateOf(const QueueEntry& entry, bool is_running) {
  if (!entry.has_exit_code()) return is_running ? kRuns : kWaits;
  if (entry.exit_code() == kDone) return kIsDone;
  return entry.cancelled() ? kCancelled : kFailed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunQueue>> RunQueue::Open(const std::string& dir) {
  for (const char* folder : {"/queue", "/runs", "/logs"}) {
    RETURN_IF_ERROR(MakeFolder(dir + folder).status());
  }
  std::unique_ptr<RunQueue> queue(new RunQueue(dir));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesIn(dir + "/queue", &IsOfRun));
  absl::MutexLock lock(&queue->mutex_);
  for (const std::string& file : files) RETURN_IF_ERROR(queue->Read(dir + "/queue/" + file));
  std::sort(queue->runs_.begin(), queue->runs_.end(),
            [](const Run& a, const Run& b) { return a.entry.number() < b.entry.number(); });
  for (Run& run : queue->runs_) {
    if (run.has_ended() || !run.entry.cancelled()) continue;
    run.entry.set_exit_code(kInterrupted);
    run.entry.set_ended(UtcNow());
    RETURN_IF_ERROR(queue->Write(run.entry));
  }
  return queue;
}

absl::Status RunQueue::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Run run;
  absl::Status read = FromJson(text, path, &run.entry);
  if (read.ok() && FileOf(run.entry.run()) != path) {
    read = absl::InvalidArgumentError(
        absl::StrCat(path, ": is of run \"", run.entry.run(), "\", want that of the file's name"));
  }
  if (!read.ok()) {
    return absl::DataLossError(absl::StrCat(read.message(), "; remove it to go on without"));
  }
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

absl::Status RunQueue::Write(const QueueEntry& entry) const {
  RETURN_IF_ERROR(ReplaceFile(FileOf(entry.run()), JsonText(ToJson(entry), 2) + "\n"));
  return SyncFolder(dir_ + "/queue");
}

QueueEntry RunQueue::NewEntry(uint64_t number, const Experiment& experiment) const {
  QueueEntry entry;
  entry.set_number(number);
  entry.set_run(absl::StrCat(experiment.name(), "-", number));
  entry.set_experiment(ToYaml(experiment));
  entry.set_epochs(experiment.epochs());
  entry.set_submitted(UtcNow());
  return entry;
}

absl::StatusOr<std::vector<std::string>> RunQueue::Submit(
    const std::vector<Experiment>& experiments) {
  absl::MutexLock lock(&mutex_);
  uint64_t number = runs_.empty() ? 0 : runs_.back().entry.number();
  std::vector<Run> added;
  std::vector<std::string> ids;
  absl::Status written;
  for (const Experiment& experiment : experiments) {
    Run run;
    do {
      run.entry = NewEntry(++number, experiment);
    } while (fs::exists(FolderOf(run.entry.run())));  // left by a run whose file somebody removed
    ids.push_back(run.entry.run());
    added.push_back(std::move(run));
    written = Write(added.back().entry);
    if (!written.ok()) break;
  }
  if (!written.ok()) {
    for (const std::string& id : ids) unlink(FileOf(id).c_str());
    return written;
  }
  std::move(added.begin(), added.end(), std::back_inserter(runs_));
  return ids;
}

absl::StatusOr<std::optional<QueueEntry>> RunQueue::Begin(const std::string& group,
                                                          const std::vector<std::string>& groups) {
  absl::MutexLock lock(&mutex_);
  const auto is_bound = [&](const Run& run) {
    return std::find(groups.begin(), groups.end(), run.entry.stages()) != groups.end();
  };
  const auto waits = [](const Run& run) { return !run.has_ended() && !run.is_running; };
  auto next = std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) {
    return waits(run) && is_bound(run) && run.entry.stages() == group;
  });
  if (next == runs_.end()) {
    next = std::find_if(runs_.begin(), runs_.end(),
                        [&](const Run& run) { return waits(run) && !is_bound(run); });
  }
  if (next == runs_.end()) return std::nullopt;
  QueueEntry begun = next->entry;
  begun.set_stages(group);
  if (group != next->entry.stages()) RETURN_IF_ERROR(Write(begun));
  next->entry = begun;
  next->is_running = true;
  return begun;
}

absl::Status RunQueue::End(const std::string& run, const RunEnd& end) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const size_t index, IndexOf(run));
  QueueEntry& entry = runs_[index].entry;
  runs_[index].is_running = false;
  entry.set_exit_code(end.exit_code);
  entry.set_error(end.error);
  if (end.test) *entry.mutable_test() = *end.test;
  entry.set_ended(UtcNow());
  return Write(entry);
}

void RunQueue::Suspend(const std::string& run) {
  absl::MutexLock lock(&mutex_);
  const auto index = IndexOf(run);
  if (index.ok()) runs_[*index].is_running = false;
}

void RunQueue::Hold(const std::string& why) {
  absl::MutexLock lock(&mutex_);
  held_ = why;
}

absl::Status RunQueue::Cancel(const std::string& run) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const size_t index, IndexOf(run));
  if (runs_[index].has_ended()) return absl::OkStatus();
  QueueEntry cancelled = runs_[index].entry;
  cancelled.set_cancelled(true);
  if (!runs_[index].is_running) {
    cancelled.set_exit_code(kInterrupted);
    cancelled.set_ended(UtcNow());
  }
  RETURN_IF_ERROR(Write(cancelled));
  runs_[index].entry = cancelled;
  return absl::OkStatus();
}

bool RunQueue::IsCancelled(const std::string& run) const {
  absl::MutexLock lock(&mutex_);
  const auto index = IndexOf(run);
  return index.ok() && runs_[*index].entry.cancelled();
}

absl::StatusOr<size_t> RunQueue::IndexOf(const std::string& run) const {
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].entry.run() == run) return i;
  }
  if (runs_.empty()) {
    return absl::NotFoundError(absl::StrCat("unknown run \"", run, "\"; the queue has none"));
  }
  std::vector<std::string> ids;
  for (const Run& known : runs_) ids.push_back(known.entry.run());
  return absl::NotFoundError(
      absl::StrCat("unknown run \"", run, "\"; nearest is \"", NearestName(run, ids), "\""));
}

QueuedRunStatus RunQueue::StatusOf(const Run& run, size_t waiting_before) const {
  const QueueEntry& entry = run.entry;
  QueuedRunStatus status;
  status.set_run(entry.run());
  status.set_state(StateOf(entry, run.is_running));
  status.set_folder(FolderOf(entry.run()));
  if (run.is_running) {
    status.set_progress(ProgressOf(FolderOf(entry.run()), LogOf(entry.run()), entry.epochs()));
  } else if (!run.has_ended()) {
    status.set_progress(held_.empty() ? absl::StrCat(waiting_before, " before it") : held_);
  } else {
    status.set_exit_code(entry.exit_code());
  }
  status.set_error(entry.error());
  if (entry.has_test()) *status.mutable_test() = entry.test();
  status.set_submitted(entry.submitted());
  status.set_ended(entry.ended());
  return status;
}

absl::StatusOr<QueuedRunStatus> RunQueue::Find(const std::string& run) const {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const size_t index, IndexOf(run));
  const auto before =
      std::count_if(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(index),
                    [](const Run& other) { return !other.has_ended() && !other.is_running; });
  return StatusOf(runs_[index], static_cast<size_t>(before));
}

std::vector<QueuedRunStatus> RunQueue::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<QueuedRunStatus> list;
  size_t waiting = 0;
  for (const Run& run : runs_) {
    list.push_back(StatusOf(run, waiting));
    if (!run.has_ended() && !run.is_running) ++waiting;
  }
  return list;
}

std::map<std::string, size_t> RunQueue::Count() const {
  std::map<std::string, size_t> counts;
  for (const char* state : kStates) counts[state] = 0;
  absl::MutexLock lock(&mutex_);
  for (const Run& run : runs_) ++counts[StateOf(run.entry, run.is_running)];
  return counts;
}

bool RunQueue::AwaitEnd(const std::string& run, absl::Duration patience) const {
  absl::MutexLock lock(&mutex_);
  const auto has_ended = [this, &run]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const auto index = IndexOf(run);
    return !index.ok() || runs_[*index].has_ended();
  };
  const auto is_over = [this, &has_ended]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return is_closed_ || has_ended(); };
  mutex_.AwaitWithTimeout(absl::Condition(&is_over), patience);
  return has_ended();
}

void RunQueue::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
}

bool RunQueue::is_closed() const {
  absl::MutexLock lock(&mutex_);
  return is_closed_;
}

}  // namespace thinwire
