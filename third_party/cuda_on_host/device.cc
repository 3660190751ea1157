#include "third_party/cuda_on_host/device.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "third_party/cuda_on_host/queue.h"
#include "third_party/cuda_on_host/stream.h"

namespace cuda_on_host {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

std::mutex flags_mutex;
std::map<int, unsigned>& Flags() {  // by device; has those whose flags were set
  static auto* const flags = new std::map<int, unsigned>;
  return *flags;
}

constexpr int kMultiprocessors = 4;  // few, so that tests reach the end of the kernels' grids

bool IsDevice(int device) { return device >= 0 && device < NumDevices(); }

}  // namespace

cudaError_t Noted(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

int CurrentDevice() { return current_device; }

int NumDevices() { return static_cast<int>(Setting("THINWIRE_EMULATED_DEVICES", 1)); }

long long Setting(const char* name, long long otherwise) {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long long value = strtoll(text, &end, 10);
  if (*end != '\0' || value < 0) {
    fprintf(stderr, "cuda_on_host: %s is '%s', want a whole number\n", name, text);
    abort();
  }
  return value;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = NumDevices();
  return Noted(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  if (flags != cudaInitDeviceFlagsAreValid) return cudaSuccess;
  const std::lock_guard<std::mutex> lock(flags_mutex);
  Flags()[device] = device_flags;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  const std::lock_guard<std::mutex> lock(flags_mutex);
  *flags = Flags()[current_device];
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  *properties = {};
  snprintf(properties->name, sizeof(properties->name), "emulated GPU");
  properties->major = 9;
  properties->minor = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  if (attribute != cudaDevAttrMultiProcessorCount) return Noted(cudaErrorInvalidValue);
  *value = kMultiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  if (bytes < 13) return Noted(cudaErrorInvalidValue);
  snprintf(id, bytes, "0000:%02X:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (InvalidateCaptures()) return Noted(cudaErrorStreamCaptureUnsupported);
  FinishEveryQueue();
  return cudaSuccess;
}
