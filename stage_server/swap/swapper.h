// Moves what blocks keep to a SwapPlace behind their forward passes, and back before their backward
// passes. Two threads of its own move it, beside the computation.
//
// The order of the backward passes is known. So of all that is kept, what is needed first stays or
// comes back, up to twice the largest block. What is needed last leaves. One more block may wait
// for its turn to leave, then Put waits.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage_server/boundary/patience.h"
#include "stage_server/swap/place.h"
#include "tensor/tensor.h"

namespace thinwire {

// A microbatch, or a slice of one, at a chunk of the stage.
struct SwapPass {
  int chunk = 0;
  int64_t first_sample = 0;  // in the batch
  int64_t first_position = 0;

  friend bool operator<(const SwapPass& a, const SwapPass& b) {
    return std::tie(a.chunk, a.first_sample, a.first_position) <
           std::tie(b.chunk, b.first_sample, b.first_position);
  }
};

// Name of the seconds that computation waits for a Swapper, where reports name activities.
inline constexpr char kSwap[] = "swap";

struct SwapCounts {
  uint64_t bytes_out = 0, bytes_in = 0;  // written and read
  uint64_t most_bytes = 0;               // that were there at once
  double wait_seconds = 0;               // of the computation, for either
};

// Put and Take are for one thread.
class Swapper {
 public:
  // Sizes of the largest block that stay or come back, and with which Put returns.
  static constexpr size_t kAtHand = 2, kMost = 3;

  // Memory of one block, each with the bytes of it that are used.
  using Memory = std::vector<std::pair<std::shared_ptr<Buffer>, size_t>>;
  // Memory that Put was given; the Swapper outlives it.
  class Entry;
  class Handle {
   public:
    Handle(Swapper* swapper, std::shared_ptr<Entry> entry)
        : swapper_(swapper), entry_(std::move(entry)) {}
    ~Handle() { swapper_->Drop(entry_.get()); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

   private:
    friend class Swapper;
    Swapper* const swapper_;
    const std::shared_ptr<Entry> entry_;
  };

  // Starts the threads. Waits end as `patience` has it.
  Swapper(std::unique_ptr<SwapPlace> place, std::shared_ptr<Patience> patience);
  ~Swapper();
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;

  bool Relieves(const Device& device) const { return place_->Relieves(device); }

  // Says in which order what is put from now on is taken: the passes in this order, of each pass
  // the last first. Passes that are not named come behind.
  void Expect(const std::vector<SwapPass>& passes);

  // Takes over the memory, which nobody writes to any more and all threads may read. Waits while
  // too much is to leave. Returns the first error of moving anything.
  absl::StatusOr<std::unique_ptr<Handle>> Put(const SwapPass& pass, Memory memory);
  // Returns the memory, in the order of Put, as all threads may use it; waits until it is there.
  absl::StatusOr<Memory> Take(Handle* handle);

  SwapCounts counts() const;

 private:
  enum class State { kHere, kLeaving, kThere, kComing };
  // Place of a pass in the order, and the negative number of a Put.
  using Rank = std::pair<size_t, int64_t>;
  using Entries = std::map<Rank, std::shared_ptr<Entry>>;

  // Lets go of all of an entry that was not taken, at the latest when its move ends.
  void Drop(Entry* entry);
  void MoveOut();
  void MoveIn();
  // Return what is to be moved next, or null.
  std::shared_ptr<Entry> NextToLeave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Entry> NextToCome() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the first entry that need not be at hand.
  Entries::iterator EndAtHand() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAtHand(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copy all of an entry that leaves, or comes.
  absl::Status WriteAll(Entry* entry);
  absl::Status ReadAll(Entry* entry);
  // End what MoveOut and MoveIn have begun.
  void HasLeft(const absl::Status& status, Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HasCome(const absl::Status& status, Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until `is_over` or an error, and returns that.
  template <typename IsOver>
  absl::Status Await(std::unique_lock<std::mutex>* lock, const char* what, const IsOver& is_over);
  // Lets go of all of an entry that nobody moves.
  void Forget(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees what FreeLeft may free only. Called by a thread of its own.
  void LetGo(Memory memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees what has left. Called by the thread that computes: its device may still read it.
  void FreeLeft() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<SwapPlace> place_;
  const std::shared_ptr<Patience> patience_;

  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::condition_variable changed_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::map<SwapPass, size_t> places_ ABSL_GUARDED_BY(mutex_);  // of passes in the order
  Entries entries_ ABSL_GUARDED_BY(mutex_);                    // not taken yet
  std::shared_ptr<Entry> wanted_ ABSL_GUARDED_BY(mutex_);      // for which Take waits
  int64_t puts_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t largest_ ABSL_GUARDED_BY(mutex_) = 0;   // bytes of an entry
  size_t resident_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes that are here, leave or come
  Memory left_ ABSL_GUARDED_BY(mutex_);          // of devices, and still part of these bytes
  uint64_t there_ ABSL_GUARDED_BY(mutex_) = 0;   // bytes that the place has
  SwapCounts counts_ ABSL_GUARDED_BY(mutex_);

  std::thread out_, in_;  // last: they use all of the above
};

}  // namespace thinwire
