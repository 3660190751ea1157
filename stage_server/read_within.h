// Reads with a deadline, which no system call of reading has: a network file system may hang for
// hours.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/memory_errors.h"

namespace thinwire {

// Returns what `read` returns, which runs on its own thread. After `patience` it returns
// DeadlineExceeded naming `what`. The thread then stays until the system lets it go, so `read` must
// own all that it uses.
template <typename T>
absl::StatusOr<T> ReadWithin(absl::Duration patience, const std::string& what,
                             std::function<absl::StatusOr<T>()> read) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<absl::StatusOr<T>> result;
  };
  const auto shared = std::make_shared<Shared>();
  std::thread([shared, read = std::move(read)] {
    absl::StatusOr<T> result = MemoryErrorsAsStatus(read);
    const std::lock_guard<std::mutex> lock(shared->mutex);
    shared->result = std::move(result);
    shared->done.notify_all();
  }).detach();
  std::unique_lock<std::mutex> lock(shared->mutex);
  if (!shared->done.wait_for(lock, absl::ToChronoNanoseconds(patience),
                             [&] { return shared->result.has_value(); })) {
    return absl::DeadlineExceededError(absl::StrCat(what, ": not read within ",
                                                    absl::FormatDuration(patience),
                                                    "; does its file system hang?"));
  }
  return *std::move(shared->result);
}

}  // namespace thinwire
