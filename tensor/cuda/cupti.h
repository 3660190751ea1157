// Kernels, copies and clearings of memory of this process's GPUs, from CUPTI. That library is
// opened at run time and linked nowhere; nobody needs it who does not ask for it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensor/activity.h"
#include "tensor/cuda/cupti_layout.h"

namespace thinwire {

// Folders and variables by which CUPTI is looked for.
struct CuptiPlaces {
  std::string beside;        // folder of the library or program that asks
  std::string library_path;  // $LD_LIBRARY_PATH
  std::string cuda_home;     // $CUDA_HOME, or where toolkits usually are
};

// Returns the paths to try, in order: in the folders of the library path, which may be a Python
// wheel's or a toolkit's neighbours of CUPTI; beside and in lib/; in the toolkit; the system's.
std::vector<std::string> CuptiPaths(const CuptiPlaces& places);

// Shortens a linker's name to the kernel's own and its template arguments, all without namespaces:
// "Softmax<float, 4>" for void nn::(anonymous namespace)::Softmax<float, 4>(float const*). What is
// longer than 80 characters ends with "...".
std::string ShortKernelName(const char* linkers);

// CUPTI's activity records. Any thread.
class Cupti {
 public:
  using OnActivity = std::function<void(const DeviceActivity&)>;

  // Returns the library, which is opened once and never closed. Null if none can be used; *why then
  // says what was looked for, and what keeps one that was found from use.
  static Cupti* Open(std::string* why);
  // Opens the first of `paths` that loads and has all functions; what it returns is never deleted,
  // as CUPTI may call it. Null if there is none. *why then says what keeps the first of those that
  // exist from use; it is empty if none exists.
  static Cupti* OpenFirst(const std::vector<std::string>& paths, std::string* why);

  // Begins to hand out activities, on threads of CUPTI and within Stop, one at a time. Their times
  // are CUPTI's, and 0 where it could not measure. FailedPrecondition if they are handed out
  // already.
  Error Start(OnActivity on_activity);
  // Hands out the rest and ends. *dropped is the number of activities for which CUPTI had no room.
  Error Stop(uint64_t* dropped);

  // Reads CUPTI's clock, in nanoseconds.
  Error Now(int64_t* nanoseconds) const;

 private:
  Cupti() = default;
  // Returns "" or what is missing.
  std::string FindFunctions(void* library);
  Error Check(int result, const char* call) const;
  static void GiveBuffer(uint8_t** buffer, size_t* bytes, size_t* most_records);
  static void TakeBuffer(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                         size_t valid_bytes);
  void HandOut(uint8_t* buffer, size_t valid_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DisableAll();

  int (*get_timestamp_)(uint64_t*) = nullptr;
  int (*register_callbacks_)(cupti::GiveBuffer, cupti::TakeBuffer) = nullptr;
  int (*enable_)(cupti::Kind) = nullptr;
  int (*disable_)(cupti::Kind) = nullptr;
  int (*flush_all_)(uint32_t flags) = nullptr;
  int (*next_record_)(uint8_t*, size_t, cupti::Record**) = nullptr;
  int (*num_dropped_)(void* context, uint32_t stream, size_t*) = nullptr;
  int (*result_string_)(int result, const char**) = nullptr;

  std::mutex mutex_;
  OnActivity on_activity_ ABSL_GUARDED_BY(mutex_);  // empty: nobody records
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
