#include "third_party/cuda_on_host/ipc.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "third_party/cuda_on_host/device.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/queue.h"
#include "third_party/cuda_on_host/stream.h"

namespace cuda_on_host {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kMagic = 0x656c646e61684350;  // "PChandle"

// Identifies exported memory. It stands in the handle, and in the file's first page, which is no
// part of the memory.
struct Label {
  uint64_t magic;
  uint64_t token;
  uint64_t bytes;
};

// Contents of a handle.
struct Handle {
  Label label;
  pid_t process;
  int file;
};
static_assert(sizeof(Handle) <= sizeof(cudaIpcMemHandle_t));

struct Opened {
  void* memory;
  size_t bytes;
  int times;  // how often it was opened and not closed
};

std::mutex mutex;
std::map<void*, Handle> exported;   // by address; guarded by mutex
std::map<uint64_t, Opened> opened;  // by token; guarded by mutex

bool IsSupported() { return Setting("THINWIRE_EMULATED_IPC", 1) != 0; }

// Returns memory for `bytes` bytes with a page before and one behind that nobody may touch.
void* Reserve(size_t bytes) {
  void* const all = mmap(nullptr, bytes + 2 * kPage, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  return all == MAP_FAILED ? nullptr : static_cast<char*>(all) + kPage;
}

void Unreserve(void* memory, size_t bytes) {
  munmap(static_cast<char*>(memory) - kPage, bytes + 2 * kPage);
}

// Replaces what is at `memory` by the file's bytes behind its first page.
bool MapFile(int file, void* memory, size_t bytes) {
  return mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, kPage) !=
         MAP_FAILED;
}

// Writes all of the bytes; a single call writes at most 2 GiB.
bool WriteAll(int file, const void* from, size_t bytes, off_t offset) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t wrote =
        pwrite(file, static_cast<const char*>(from) + done, bytes - done, offset + done);
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

// Moves pages to a file, at the same address, and describes it in `handle`.
bool MoveToFile(void* memory, size_t bytes, Handle* handle) {
  const int file = memfd_create("cuda_on_host", MFD_CLOEXEC);
  if (file < 0) return false;
  *handle = {{kMagic, 0, bytes}, getpid(), file};
  const bool moved = getrandom(&handle->label.token, sizeof(handle->label.token), 0) ==
                         sizeof(handle->label.token) &&
                     ftruncate(file, static_cast<off_t>(kPage + bytes)) == 0 &&
                     WriteAll(file, &handle->label, sizeof(handle->label), /*offset=*/0) &&
                     WriteAll(file, memory, bytes, kPage) && MapFile(file, memory, bytes);
  if (!moved) close(file);
  return moved;
}

// Maps the memory of a handle; null if it is gone.
void* Map(const Handle& handle) {
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return nullptr;
  Label found = {};
  void* memory = nullptr;
  if (pread(file, &found, sizeof(found), 0) == sizeof(found) &&
      std::memcmp(&found, &handle.label, sizeof(found)) == 0) {
    memory = Reserve(found.bytes);
    if (memory != nullptr && !MapFile(file, memory, found.bytes)) {
      Unreserve(memory, found.bytes);
      memory = nullptr;
    }
  }
  close(file);
  return memory;
}

}  // namespace

void* NewPages(size_t bytes) {
  void* const pages = Reserve(bytes);
  if (pages == nullptr) return nullptr;
  if (mprotect(pages, bytes, PROT_READ | PROT_WRITE) == 0) return pages;
  Unreserve(pages, bytes);
  return nullptr;
}

void FreePages(void* pages, size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (const auto found = exported.find(pages); found != exported.end()) {
      close(found->second.file);
      exported.erase(found);
    }
  }
  Unreserve(pages, bytes);
}

}  // namespace cuda_on_host

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  if (!IsSupported()) return Noted(cudaErrorNotSupported);
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  const size_t bytes = BytesOfPages(memory);
  if (bytes == 0) return Noted(cudaErrorInvalidValue);
  FinishEveryQueue();
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = exported.find(memory);
  if (found == exported.end()) {
    Handle made = {};
    if (!MoveToFile(memory, bytes, &made)) return Noted(cudaErrorMapBufferObjectFailed);
    found = exported.emplace(memory, made).first;
  }
  *handle = {};
  std::memcpy(handle->reserved, &found->second, sizeof(found->second));
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags) {
  if (!IsSupported()) return Noted(cudaErrorNotSupported);
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  Handle named = {};
  std::memcpy(&named, handle.reserved, sizeof(named));
  if (flags != cudaIpcMemLazyEnablePeerAccess) return Noted(cudaErrorInvalidValue);
  if (named.label.magic != kMagic) return Noted(cudaErrorInvalidResourceHandle);
  if (named.process == getpid()) return Noted(cudaErrorDeviceUninitialized);
  const std::lock_guard<std::mutex> lock(mutex);
  Opened& entry = opened[named.label.token];
  if (entry.times == 0) {
    entry = {Map(named), named.label.bytes, 0};
    if (entry.memory == nullptr) {
      opened.erase(named.label.token);
      return Noted(cudaErrorMapBufferObjectFailed);
    }
    RecordOpened(entry.memory, entry.bytes);
  }
  ++entry.times;
  *memory = entry.memory;
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  FinishEveryQueue();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = std::find_if(opened.begin(), opened.end(), [memory](const auto& entry) {
    return entry.second.memory == memory;
  });
  if (found == opened.end()) return Noted(cudaErrorInvalidValue);
  if (--found->second.times > 0) return cudaSuccess;
  ForgetOpened(memory);
  Unreserve(memory, found->second.bytes);
  opened.erase(found);
  return cudaSuccess;
}
