#include "tensor/cuda/nvml.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

namespace thinwire {
namespace {

// The part of NVML (NVIDIA's API reference) that is used here. It comes with drivers, not with the
// toolkit.
using NvmlDevice = struct NvmlOpaqueDevice*;
struct NvmlUtilization {
  unsigned gpu = 0, memory = 0;  // percent
};
constexpr int kNvmlSuccess = 0;

class Monitor {
 public:
  Monitor() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    int (*init)() = nullptr;
    works_ = Find(library, "nvmlInit_v2", &init) &&
             Find(library, "nvmlDeviceGetHandleByPciBusId_v2", &handle_of_) &&
             Find(library, "nvmlDeviceGetUtilizationRates", &utilization_of_) &&
             Find(library, "nvmlSystemGetDriverVersion", &driver_version_) &&
             init() == kNvmlSuccess;
  }

  double BusyFraction(int device) const {
    // NVML also counts devices that CUDA_VISIBLE_DEVICES hides, so the device is found by its bus
    // id.
    char bus_id[32] = {};
    NvmlDevice handle = nullptr;
    NvmlUtilization utilization;
    if (!works_) return -1;
    if (cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), device) != cudaSuccess) {
      (void)cudaGetLastError();
      return -1;
    }
    if (handle_of_(bus_id, &handle) != kNvmlSuccess ||
        utilization_of_(handle, &utilization) != kNvmlSuccess) {
      return -1;
    }
    return utilization.gpu / 100.0;
  }

  std::string DriverVersion() const {
    char version[80] = {};
    if (!works_ || driver_version_(version, sizeof(version)) != kNvmlSuccess) return "";
    return version;
  }

 private:
  template <typename Function>
  static bool Find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
  }

  bool works_ = false;
  int (*handle_of_)(const char* bus_id, NvmlDevice* device) = nullptr;
  int (*utilization_of_)(NvmlDevice device, NvmlUtilization* utilization) = nullptr;
  int (*driver_version_)(char* version, unsigned bytes) = nullptr;
};

const Monitor& TheMonitor() {
  static const Monitor* const monitor = new Monitor;
  return *monitor;
}

}  // namespace

double BusyFraction(int device) { return TheMonitor().BusyFraction(device); }

std::string DriverVersion() { return TheMonitor().DriverVersion(); }

}  // namespace thinwire
