#include "third_party/cuda_on_host/memory.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "third_party/cuda_on_host/device.h"
#include "third_party/cuda_on_host/ipc.h"
#include "third_party/cuda_on_host/queue.h"
#include "third_party/cuda_on_host/stream.h"

struct CUmemPoolHandle_st {};

namespace cuda_on_host {
namespace {

constexpr int kMostDevices = 16;
constexpr size_t kAlignment = 256;

enum class Origin {
  kHeap,
  kPages,       // of NewPages
  kRegistered,  // the caller's memory
  kOpened,      // another process'
};

struct Allocation {
  size_t bytes;
  cudaMemoryType type;
  int device;
  bool leaving;  // freed, but its stream has not come to that yet
  Origin origin;

  bool is_ours() const { return origin == Origin::kHeap || origin == Origin::kPages; }
};

struct PerDevice {
  uint64_t used = 0;
  CUmemPoolHandle_st pool;
};

std::mutex mutex;
std::map<uintptr_t, Allocation> allocations;     // guarded by mutex
std::array<PerDevice, kMostDevices> per_device;  // guarded by mutex

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

void* FromHeap(size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, kAlignment, bytes) == 0 ? memory : nullptr;
}

// Returns a new block, or null when the device has not that many bytes left.
void* Take(size_t bytes, cudaMemoryType type, int device, Origin origin) {
  std::lock_guard<std::mutex> lock(mutex);
  PerDevice& of = per_device[device];
  const bool counted = type == cudaMemoryTypeDevice;
  if (counted && (of.used > DeviceMemoryBytes() || bytes > DeviceMemoryBytes() - of.used)) {
    return nullptr;
  }
  void* const memory = origin == Origin::kPages ? NewPages(bytes) : FromHeap(bytes);
  if (memory == nullptr) return nullptr;
  memset(memory, 0xff, bytes);  // NaNs, so that reads before writes show
  allocations[Address(memory)] = {bytes, type, device, false, origin};
  if (counted) of.used += bytes;
  return memory;
}

void Release(void* memory) {
  Allocation released;
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto found = allocations.find(Address(memory));
    released = found->second;
    if (released.type == cudaMemoryTypeDevice) per_device[released.device].used -= released.bytes;
    allocations.erase(found);
  }
  if (released.origin == Origin::kPages) {
    FreePages(memory, released.bytes);
  } else {
    free(memory);
  }
}

// Marks a block as leaving. Returns false unless `memory` is a block of that type that nobody has
// freed.
bool StartRelease(void* memory, cudaMemoryType type) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = allocations.find(Address(memory));
  if (found == allocations.end() || found->second.type != type || found->second.leaving ||
      !found->second.is_ours()) {
    return false;
  }
  found->second.leaving = true;
  return true;
}

cudaError_t Allocate(void** memory, size_t bytes, cudaMemoryType type,
                     Origin origin = Origin::kHeap) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  *memory = Take(bytes, type, CurrentDevice(), origin);
  if (*memory == nullptr) {  // tries again once all memory that was freed on streams is gone
    FinishEveryQueue();
    *memory = Take(bytes, type, CurrentDevice(), origin);
  }
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Records the caller's memory as page-locked. Returns false if any of it is recorded already.
bool Register(void* memory, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  const uintptr_t begin = Address(memory);
  const auto after = allocations.lower_bound(begin + bytes);
  if (after != allocations.begin()) {
    const auto& [address, allocation] = *std::prev(after);
    if (address + allocation.bytes > begin) return false;
  }
  allocations[begin] = {bytes, cudaMemoryTypeHost, 0, false, Origin::kRegistered};
  return true;
}

bool IsRegistered(void* memory) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = allocations.find(Address(memory));
  return found != allocations.end() && found->second.origin == Origin::kRegistered;
}

void Unregister(void* memory) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations.erase(Address(memory));
}

// Returns whether a copy of that kind may have these types of memory at its two ends.
bool KindFits(cudaMemcpyKind kind, cudaMemoryType to, cudaMemoryType from) {
  const bool to_device = to == cudaMemoryTypeDevice;
  const bool from_device = from == cudaMemoryTypeDevice;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
  }
  return false;
}

}  // namespace

size_t DeviceMemoryBytes() {
  return static_cast<size_t>(Setting("THINWIRE_EMULATED_MEMORY", 16LL << 30));
}

cudaMemoryType TypeOf(const void* begin, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto after = allocations.upper_bound(Address(begin));
  if (after == allocations.begin()) return cudaMemoryTypeUnregistered;
  const auto& [address, allocation] = *--after;
  const size_t offset = Address(begin) - address;
  return !allocation.leaving && offset <= allocation.bytes && bytes <= allocation.bytes - offset
             ? allocation.type
             : cudaMemoryTypeUnregistered;
}

size_t BytesOfPages(void* begin) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = allocations.find(Address(begin));
  const bool has_pages = found != allocations.end() && found->second.origin == Origin::kPages &&
                         !found->second.leaving;
  return has_pages ? found->second.bytes : 0;
}

void RecordOpened(void* memory, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations[Address(memory)] = {bytes, cudaMemoryTypeDevice, CurrentDevice(), false,
                                  Origin::kOpened};
}

void ForgetOpened(void* memory) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations.erase(Address(memory));
}

}  // namespace cuda_on_host

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  const Origin origin = bytes % kPagesBytes == 0 ? Origin::kPages : Origin::kHeap;
  return Noted(Allocate(memory, bytes, cudaMemoryTypeDevice, origin));
}

cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  if (!StartRelease(memory, cudaMemoryTypeDevice)) return Noted(cudaErrorInvalidValue);
  FinishEveryQueue();
  Release(memory);
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  if (InvalidateCapture(stream)) return Noted(cudaErrorStreamCaptureUnsupported);
  return Noted(Allocate(memory, bytes, cudaMemoryTypeDevice));
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  if (memory == nullptr) return cudaSuccess;
  if (InvalidateCapture(stream)) return Noted(cudaErrorStreamCaptureUnsupported);
  if (!StartRelease(memory, cudaMemoryTypeDevice)) return Noted(cudaErrorInvalidValue);
  return Noted(Submit(stream, [memory] { Release(memory); }));
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  return Noted(Allocate(memory, bytes, cudaMemoryTypeHost));
}

cudaError_t cudaFreeHost(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  if (!StartRelease(memory, cudaMemoryTypeHost)) return Noted(cudaErrorInvalidValue);
  FinishEveryQueue();
  Release(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  if (memory == nullptr || bytes == 0) return Noted(cudaErrorInvalidValue);
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  return Register(memory, bytes) ? cudaSuccess : Noted(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* memory) {
  if (UnsafeWhileCapturing()) return Noted(cudaErrorStreamCaptureUnsupported);
  if (!IsRegistered(memory)) return Noted(cudaErrorHostMemoryNotRegistered);
  FinishEveryQueue();
  Unregister(memory);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  std::lock_guard<std::mutex> lock(mutex);
  const uint64_t used = per_device[CurrentDevice()].used;
  *total = DeviceMemoryBytes();
  *free = used < *total ? *total - used : 0;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  attributes->type = TypeOf(pointer, 1);
  attributes->device = CurrentDevice();
  void* const same = const_cast<void*>(pointer);
  if (attributes->type != cudaMemoryTypeUnregistered) attributes->devicePointer = same;
  if (attributes->type != cudaMemoryTypeDevice) attributes->hostPointer = same;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!KindFits(kind, TypeOf(to, bytes), TypeOf(from, bytes))) return Noted(cudaErrorInvalidValue);
  return Noted(Submit(stream, [=] { memcpy(to, from, bytes); }));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (TypeOf(memory, bytes) == cudaMemoryTypeUnregistered) return Noted(cudaErrorInvalidValue);
  return Noted(Submit(stream, [memory, value, bytes] { memset(memory, value, bytes); }));
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (device < 0 || device >= NumDevices()) return Noted(cudaErrorInvalidDevice);
  *pool = &per_device[device].pool;
  return cudaSuccess;
}

// Has no effect, because the pool keeps no memory and none is reused.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }

// Has nothing to do, because the pool keeps no memory.
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
