// Reads with a deadline, which no system call of reading has: a network file system may hang for
// hours.
#pragma once

#include <functional>
#include <future>
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
  std::packaged_task<absl::StatusOr<T>()> task(
      [read = std::move(read)]() mutable { return MemoryErrorsAsStatus(read); });
  std::future<absl::StatusOr<T>> result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(absl::ToChronoNanoseconds(patience)) == std::future_status::ready) {
    return result.get();
  }
  return absl::DeadlineExceededError(absl::StrCat(
      what, ": not read within ", absl::FormatDuration(patience), "; does its file system hang?"));
}

}  // namespace thinwire
