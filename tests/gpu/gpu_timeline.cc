// A library that CUDA loads into a program (CUDA_INJECTION64_PATH). It writes every kernel, copy
// and clearing of memory of the program's GPU to the file $THINWIRE_TIMELINE, one line each:
//   K START END STREAM BLOCKS NAME, C START END STREAM BYTES copy, S START END STREAM BYTES clear
// START and END are in nanoseconds; NAME is the linker's. Kernels of recordings are among them.
// Needs CUPTI (libcupti.so of the toolkit, or of Python's wheel) where the program's libraries are.
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

constexpr size_t kBufferBytes = size_t{8} << 20;
constexpr size_t kAlignment = 64;

std::FILE* timeline = nullptr;
std::mutex mutex;  // guards the file

// Returns a function of CUPTI by its name, or null where there is none.
template <typename Function>
Function* Find(const char* name) {
  static void* const cupti = [] {
    void* found = dlopen("libcupti.so.13", RTLD_NOW);
    return found != nullptr ? found : dlopen("libcupti.so", RTLD_NOW);
  }();
  return cupti == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(cupti, name));
}

void GiveBuffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // 0: as many as fit
}

template <typename Record>
void Write(char kind, const Record& record, uint64_t amount, const char* name) {
  std::fprintf(timeline, "%c %llu %llu %u %llu %s\n", kind,
               static_cast<unsigned long long>(record.start),
               static_cast<unsigned long long>(record.end), record.streamId,
               static_cast<unsigned long long>(amount), name);
}

void WriteRecord(const CUpti_Activity& activity) {
  if (activity.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(activity);
    const int64_t blocks = int64_t{kernel.gridX} * kernel.gridY * kernel.gridZ;
    Write('K', kernel, static_cast<uint64_t>(blocks), kernel.name);
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(activity);
    Write('C', copy, copy.bytes, "copy");
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& clear = reinterpret_cast<const CUpti_ActivityMemset4&>(activity);
    Write('S', clear, clear.bytes, "clear");
  }
}

void TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  auto* const next = Find<decltype(cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (next(buffer, valid_bytes, &record) == CUPTI_SUCCESS) WriteRecord(*record);
  std::free(buffer);
}

void FlushAtExit() {
  (void)Find<decltype(cuptiActivityFlushAll)>("cuptiActivityFlushAll")(
      CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard<std::mutex> lock(mutex);
  std::fflush(timeline);
}

}  // namespace

// Opens the file and starts the recording. CUDA calls this when it begins. Always returns 1, for
// success.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* const path = std::getenv("THINWIRE_TIMELINE");
  auto* const enable = Find<decltype(cuptiActivityEnable)>("cuptiActivityEnable");
  auto* const take =
      Find<decltype(cuptiActivityRegisterCallbacks)>("cuptiActivityRegisterCallbacks");
  if (path == nullptr || enable == nullptr || take == nullptr) {
    std::fprintf(
        stderr, "timeline: %s\n",
        path == nullptr ? "THINWIRE_TIMELINE names no file" : "no libcupti.so.13 is found");
    return 1;  // the program runs on without a timeline
  }
  timeline = std::fopen(path, "w");
  if (timeline == nullptr) {
    std::perror(path);
    return 1;
  }
  (void)take(GiveBuffer, TakeBuffer);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    (void)enable(kind);
  }
  std::atexit(FlushAtExit);
  return 1;
}
