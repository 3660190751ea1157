#include "data/external_sort.h"

#include <algorithm>
#include <queue>

#include "base/status.h"

namespace thinwire {
namespace {

constexpr int64_t kRecordBytes = sizeof(SortRecord);
constexpr int64_t kLeastAtOnce = 64;

// Reads a sorted run, some records at a time.
class Run {
 public:
  Run(const TemporaryFile* file, int64_t begin, int64_t end, int64_t at_once)
      : file_(file), next_(begin), end_(end), at_once_(at_once) {}

  // Goes to the first record, or to the next one; false behind the last.
  absl::StatusOr<bool> Advance() {
    if (++at_ < read_.size()) return true;
    const int64_t left = (end_ - next_) / kRecordBytes;
    if (left == 0) return false;
    read_.resize(static_cast<size_t>(std::min(at_once_, left)));
    at_ = 0;
    const size_t bytes = read_.size() * sizeof(SortRecord);
    RETURN_IF_ERROR(file_->Read(next_, read_.data(), bytes));
    next_ += static_cast<int64_t>(bytes);
    return true;
  }
  const SortRecord& record() const { return read_[at_]; }

 private:
  const TemporaryFile* file_;
  int64_t next_, end_, at_once_;
  std::vector<SortRecord> read_;
  size_t at_ = 0;
};

// Orders runs for a queue, whose top is its greatest.
struct ComesLater {
  bool operator()(const Run* a, const Run* b) const { return b->record() < a->record(); }
};

}  // namespace

absl::Status ExternalSort::Add(const SortRecord& record) {
  if (records_.size() == in_memory_) RETURN_IF_ERROR(WriteRun());
  records_.push_back(record);
  return absl::OkStatus();
}

absl::Status ExternalSort::WriteRun() {
  if (!file_) {
    ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::In(folder_));
    file_.emplace(std::move(file));
  }
  std::sort(records_.begin(), records_.end());
  for (const SortRecord& record : records_) {
    RETURN_IF_ERROR(file_->Append(&record, sizeof(record)));
  }
  ends_.push_back(file_->size());
  records_.clear();
  return absl::OkStatus();
}

absl::Status ExternalSort::HandOn(const Take& take) {
  if (ends_.empty()) {
    std::sort(records_.begin(), records_.end());
    for (const SortRecord& record : records_) RETURN_IF_ERROR(take(record));
    records_ = {};
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(WriteRun());
  records_ = {};  // the runs' portions take its memory
  RETURN_IF_ERROR(file_->Flush());
  return Merge(take);
}

absl::Status ExternalSort::Merge(const Take& take) {
  const auto share = static_cast<int64_t>(in_memory_ / ends_.size());
  std::vector<Run> runs;
  runs.reserve(ends_.size());
  for (size_t i = 0; i < ends_.size(); ++i) {
    runs.emplace_back(&*file_, i > 0 ? ends_[i - 1] : 0, ends_[i], std::max(share, kLeastAtOnce));
  }
  std::priority_queue<Run*, std::vector<Run*>, ComesLater> queue;
  for (Run& run : runs) {
    ASSIGN_OR_RETURN(const bool has_record, run.Advance());
    if (has_record) queue.push(&run);
  }
  while (!queue.empty()) {
    Run* const run = queue.top();
    queue.pop();
    RETURN_IF_ERROR(take(run->record()));
    ASSIGN_OR_RETURN(const bool goes_on, run->Advance());
    if (goes_on) queue.push(run);
  }
  return absl::OkStatus();
}

}  // namespace thinwire
