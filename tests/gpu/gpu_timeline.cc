// A library that CUDA loads into a program (CUDA_INJECTION64_PATH). It writes every kernel, copy
// and clearing of memory of the program's GPU to the file $THINWIRE_TIMELINE, one line each:
//   K START END STREAM BLOCKS NAME, C START END STREAM BYTES copy, S START END STREAM BYTES clear
// START and END are in nanoseconds of CUPTI's clock. Kernels of recordings are among them.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tensor/cuda/cupti.h"

namespace thinwire {
namespace {

std::FILE* timeline = nullptr;

void Write(const DeviceActivity& activity) {
  const bool is_kernel = activity.kind == DeviceActivity::Kind::kKernel;
  const bool is_clear = activity.kind == DeviceActivity::Kind::kClear;
  std::fprintf(timeline, "%c %lld %lld %u %llu %s\n",
               is_kernel  ? 'K'
               : is_clear ? 'S'
                          : 'C',
               static_cast<long long>(activity.begin), static_cast<long long>(activity.end),
               activity.stream, static_cast<unsigned long long>(activity.amount),
               is_kernel  ? activity.name
               : is_clear ? "clear"
                          : "copy");
}

void EndAtExit() {
  uint64_t dropped = 0;
  std::string why;
  (void)Cupti::Open(&why)->Stop(&dropped);
  std::fflush(timeline);
  if (dropped > 0) {
    std::fprintf(stderr, "timeline: %llu activities found no room\n",
                 static_cast<unsigned long long>(dropped));
  }
}

// Returns "" or why there is no timeline.
std::string Begin() {
  const char* const path = std::getenv("THINWIRE_TIMELINE");
  if (path == nullptr) return "THINWIRE_TIMELINE names no file";
  std::string why;
  Cupti* const cupti = Cupti::Open(&why);
  if (cupti == nullptr) return why;
  timeline = std::fopen(path, "w");
  if (timeline == nullptr) return std::string(path) + " cannot be written";
  const Error error = cupti->Start(Write);
  if (error.ok()) std::atexit(EndAtExit);
  return error.message;
}

}  // namespace
}  // namespace thinwire

// Opens the file and starts the recording. CUDA calls this when it begins. Always returns 1, for
// success: the program runs on without a timeline.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const std::string why = thinwire::Begin();
  if (!why.empty()) std::fprintf(stderr, "timeline: %s\n", why.c_str());
  return 1;
}
