#include "stage_server/swap/swapper.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"

namespace thinwire {

// What one block keeps of one pass. Its memory and its copies belong to the thread that moves it,
// otherwise to who has the lock; all else is guarded by the lock.
class Swapper::Entry {
 public:
  Rank rank = {};
  size_t bytes = 0;
  State state = State::kThere;  // until it is put
  bool is_taken = false, is_dropped = false;
  Memory memory;                                     // null buffers unless it is here
  std::vector<std::unique_ptr<SwappedBytes>> there;  // copies; empty: none
};

Swapper::Swapper(std::unique_ptr<SwapPlace> place, std::shared_ptr<Patience> patience)
    : place_(std::move(place)),
      patience_(std::move(patience)),
      out_([this] { MoveOut(); }),
      in_([this] { MoveIn(); }) {}

Swapper::~Swapper() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  out_.join();
  in_.join();
}

void Swapper::Expect(const std::vector<SwapPass>& passes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  places_.clear();
  for (const SwapPass& pass : passes) places_.emplace(pass, places_.size());
}

template <typename IsOver>
absl::Status Swapper::Await(std::unique_lock<std::mutex>* lock, const char* what,
                            const IsOver& is_over) {
  const SteadyTime begin = SteadyTime::Now();
  SteadyTime deadline = patience_->Deadline();
  const auto ends = [&] {
    FreeLeft();
    return !status_.ok() || is_over();
  };
  bool is_late = false;
  while (!is_late && !changed_.wait_until(*lock, deadline.chrono(), ends)) {
    is_late = !patience_->Extend(SteadyTime::Now(), &deadline);
  }
  counts_.wait_seconds += SecondsSince(begin);
  if (!is_late) return status_;
  return absl::DeadlineExceededError(
      absl::StrCat("swap: ", what, " within ", absl::FormatDuration(SteadyTime::Now() - begin)));
}

absl::StatusOr<std::unique_ptr<Swapper::Handle>> Swapper::Put(const SwapPass& pass, Memory memory) {
  auto entry = std::make_shared<Entry>();
  for (const auto& [buffer, bytes] : memory) entry->bytes += bytes;
  entry->memory = std::move(memory);
  auto handle = std::make_unique<Handle>(this, entry);
  std::unique_lock<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(status_);
  const auto place = places_.find(pass);
  entry->rank = {place == places_.end() ? places_.size() : place->second, -++puts_};
  entry->state = State::kHere;
  entries_[entry->rank] = entry;
  resident_ += entry->bytes;
  largest_ = std::max(largest_, entry->bytes);
  FreeLeft();
  changed_.notify_all();
  const auto has_room = [this] { return resident_ <= kMost * largest_; };
  if (!has_room()) RETURN_IF_ERROR(Await(&lock, "nothing has left", has_room));
  return handle;
}

absl::StatusOr<Swapper::Memory> Swapper::Take(Handle* handle) {
  Entry& entry = *handle->entry_;
  std::unique_lock<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(status_);
  entries_.erase(entry.rank);
  wanted_ = handle->entry_;
  FreeLeft();
  changed_.notify_all();
  absl::Status status;
  if (entry.state != State::kHere) {
    status = Await(&lock, "nothing has come", [&entry] { return entry.state == State::kHere; });
  }
  wanted_ = nullptr;
  RETURN_IF_ERROR(status);
  entry.is_taken = true;
  resident_ -= entry.bytes;
  Memory memory = std::move(entry.memory);
  entry.state = State::kThere;
  Forget(&entry);
  changed_.notify_all();
  return memory;
}

void Swapper::Drop(Entry* entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entry->is_taken) return;
  entries_.erase(entry->rank);
  entry->is_dropped = true;
  const bool moves = entry->state == State::kLeaving || entry->state == State::kComing;
  if (!moves) Forget(entry);
  FreeLeft();
}

void Swapper::Forget(Entry* entry) {
  if (entry->state == State::kHere) LetGo(std::move(entry->memory));
  if (!entry->there.empty()) there_ -= entry->bytes;
  entry->there.clear();
}

// A block that only the host reads and writes is of no use to a computation that has gone on.
void Swapper::LetGo(Memory memory) {
  for (auto& one : memory) {
    if (one.first == nullptr || one.first->device()->is_host()) {
      resident_ -= one.second;
    } else {
      left_.push_back(std::move(one));
    }
  }
}

void Swapper::FreeLeft() {
  for (const auto& [buffer, bytes] : left_) resident_ -= bytes;
  left_.clear();
}

Swapper::Entries::iterator Swapper::EndAtHand() {
  size_t bytes = 0;
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entries::value_type& one) {
    bytes += one.second->bytes;
    return bytes > kAtHand * largest_;
  });
}

bool Swapper::IsAtHand(const Entry& entry) {
  const auto end = EndAtHand();
  return wanted_.get() == &entry || end == entries_.end() || entry.rank < end->first;
}

std::shared_ptr<Swapper::Entry> Swapper::NextToLeave() {
  const auto end = std::make_reverse_iterator(EndAtHand());
  const auto next = std::find_if(entries_.rbegin(), end, [](const Entries::value_type& one) {
    return one.second->state == State::kHere;
  });
  return next == end ? nullptr : next->second;
}

std::shared_ptr<Swapper::Entry> Swapper::NextToCome() {
  if (wanted_ != nullptr && wanted_->state == State::kThere) return wanted_;
  const auto end = EndAtHand();
  const auto next = std::find_if(entries_.begin(), end, [](const Entries::value_type& one) {
    return one.second->state == State::kThere;
  });
  if (next == end || resident_ + next->second->bytes > kMost * largest_) return nullptr;
  return next->second;
}

void Swapper::MoveOut() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    std::shared_ptr<Entry> entry;
    changed_.wait(lock, [&] {
      entry = status_.ok() ? NextToLeave() : nullptr;
      return ends_ || entry != nullptr;
    });
    if (ends_) return;
    entry->state = State::kLeaving;
    absl::Status status;
    if (entry->there.empty()) {
      lock.unlock();
      status = WriteAll(entry.get());
      lock.lock();
      if (status.ok()) {
        counts_.bytes_out += entry->bytes;
        there_ += entry->bytes;
        counts_.most_bytes = std::max(counts_.most_bytes, there_);
      }
    }
    HasLeft(status, entry.get());
  }
}

absl::Status Swapper::WriteAll(Entry* entry) {
  for (const auto& [buffer, bytes] : entry->memory) {
    absl::StatusOr<std::unique_ptr<SwappedBytes>> written = place_->Write(*buffer, bytes);
    if (!written.ok()) {
      entry->there.clear();
      return written.status();
    }
    entry->there.push_back(*std::move(written));
  }
  return absl::OkStatus();
}

void Swapper::HasLeft(const absl::Status& status, Entry* entry) {
  status_.Update(status);
  if (status.ok() && !entry->is_dropped && !IsAtHand(*entry)) {
    Memory memory = entry->memory;
    for (auto& [buffer, bytes] : entry->memory) buffer = nullptr;
    LetGo(std::move(memory));
    entry->state = State::kThere;
  } else {
    entry->state = State::kHere;
  }
  if (entry->is_dropped) Forget(entry);
  changed_.notify_all();
}

void Swapper::MoveIn() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    std::shared_ptr<Entry> entry;
    changed_.wait(lock, [&] {
      entry = status_.ok() ? NextToCome() : nullptr;
      return ends_ || entry != nullptr;
    });
    if (ends_) return;
    entry->state = State::kComing;
    resident_ += entry->bytes;
    lock.unlock();
    const absl::Status status = ReadAll(entry.get());
    lock.lock();
    HasCome(status, entry.get());
  }
}

absl::Status Swapper::ReadAll(Entry* entry) {
  for (size_t i = 0; i < entry->there.size(); ++i) {
    ASSIGN_OR_RETURN(entry->memory[i].first, entry->there[i]->Read());
  }
  return absl::OkStatus();
}

void Swapper::HasCome(const absl::Status& status, Entry* entry) {
  status_.Update(status);
  if (status.ok()) counts_.bytes_in += entry->bytes;
  entry->state = State::kHere;
  if (entry->is_dropped) Forget(entry);
  changed_.notify_all();
}

SwapCounts Swapper::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace thinwire
