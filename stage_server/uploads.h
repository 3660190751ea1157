// The calls that send a file: how many are under way, and until when each has to begin. A client's
// messages are held in memory as soon as they come, whoever sends them. Any thread; time is passed
// in.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace thinwire {

class Uploads {
 public:
  // One call, from Begin until this goes. `Uploads` outlives it.
  class Upload {
   public:
    ~Upload();
    // Says that the first message has come: from now on the client has time.
    void HasOpened();

   private:
    friend class Uploads;
    Upload(Uploads* uploads, std::function<void()> cancel, SteadyTime deadline)
        : uploads_(*uploads), cancel_(std::move(cancel)), deadline_(deadline) {}

    Uploads& uploads_;              // whose lock guards the next
    std::function<void()> cancel_;  // empty once the first message has come
    const SteadyTime deadline_;     // of the first message
  };

  // Sets the longest time that the first message of a call may take; called before the first call.
  void set_patience(absl::Duration patience) { patience_ = patience; }

  // Lets a call in, which `cancel` ends if its first message does not come in time.
  // ResourceExhausted while as many as may be are under way, and after Stop.
  absl::StatusOr<std::unique_ptr<Upload>> Begin(std::function<void()> cancel, SteadyTime now);

  // Cancels the calls whose first message is late.
  void CancelLate(SteadyTime now);

  // Lets no call in any more, and cancels those whose first message has not come.
  void Stop();

 private:
  absl::Duration patience_;
  absl::Mutex mutex_;
  std::set<Upload*> under_way_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace thinwire
