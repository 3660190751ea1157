#include "backend/plugin.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "backend/build_id.h"
#include "backend/cuda/libraries.h"
#include "compress/cuda/kernels.h"
#include "nn/cuda/ops.h"
#include "tensor/cuda/activity_recorder.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/direct_copies.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/nvml.h"

namespace thinwire {
namespace {

// Returns CUDA's version number as text: "13.0" for 13000.
std::string Spelled(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string Driver(int cuda_version) {
  const std::string version = DriverVersion();
  return version.empty() ? "driver for CUDA " + Spelled(cuda_version) : "driver " + version;
}

// Copies as much of `text` as fits into `to`, and ends it with a zero.
template <size_t kBytes>
void Put(const std::string& text, char (&to)[kBytes]) {
  to[text.copy(to, kBytes - 1)] = '\0';
}

class CudaBackend final : public BackendPlugin {
 public:
  Error CountDevices(int* count) override {
    int driver = 0, runtime = 0;
    CUDA_RETURN_IF_ERROR(cudaDriverGetVersion(&driver));
    CUDA_RETURN_IF_ERROR(cudaRuntimeGetVersion(&runtime));
    if (driver == 0) {
      return MakeError(absl::StatusCode::kUnavailable, "no NVIDIA driver was found");
    }
    *count = 0;
    const cudaError_t code = cudaGetDeviceCount(count);
    if (code == cudaErrorInsufficientDriver) {
      (void)cudaGetLastError();
      return MakeError(absl::StatusCode::kUnavailable,
                       "the NVIDIA driver is for CUDA %s, want one for %s or later",
                       Spelled(driver).c_str(), Spelled(runtime).c_str());
    }
    if (code == cudaErrorNoDevice) {
      (void)cudaGetLastError();
      return Error{};
    }
    return CudaError(code, "cudaGetDeviceCount");
  }

  Error Describe(int index, DeviceDescription* description) override {
    RETURN_ERROR(CheckIndex(index));
    cudaDeviceProp properties;
    int driver = 0, runtime = 0;
    CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, index));
    CUDA_RETURN_IF_ERROR(cudaDriverGetVersion(&driver));
    CUDA_RETURN_IF_ERROR(cudaRuntimeGetVersion(&runtime));
    *description = DeviceDescription();
    Put(properties.name, description->name);
    Put("CUDA " + Spelled(runtime) + ", " + ArithmeticLibraries() + ", " + Driver(driver),
        description->libraries);
    return Error{};
  }

  Error Open(int index, Device** device, CodecKernels** kernels, DirectCopies** copies) override {
    RETURN_ERROR(CheckIndex(index));
    const std::lock_guard<std::mutex> lock(mutex_);
    Opened& opened = opened_[index];
    if (opened.device == nullptr) {
      RETURN_ERROR(NewCudaDevice(index, &opened.device));
      opened.kernels = std::make_unique<CudaKernels>(opened.device);
      opened.copies = NewCudaDirectCopies(opened.device);
    }
    *device = opened.device;
    *kernels = opened.kernels.get();
    *copies = opened.copies.get();
    return Error{};
  }

  Error NewOps(Device* device, const OpsOptions& options, Ops** ops) override {
    return NewCudaOps(static_cast<CudaDevice*>(device), options, ops);
  }

  Error NewActivityRecorder(size_t most, ActivityRecorder** recorder) override {
    return NewCuptiRecorder(
        most, [this] { return FinishDevices(); }, recorder);
  }

 private:
  struct Opened {
    CudaDevice* device = nullptr;
    std::unique_ptr<CodecKernels> kernels;
    std::unique_ptr<DirectCopies> copies;
  };

  // Waits for the work of all threads at all devices. Returns the first error.
  Error FinishDevices() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Error first;
    for (const auto& [index, opened] : opened_) {
      if (opened.device == nullptr) continue;  // it could not be opened
      const Error finished = Finish(opened.device);
      if (first.ok()) first = finished;
    }
    return first;
  }
  static Error Finish(CudaDevice* device) {
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));  // makes the device the thread's
    CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
    return Error{};
  }

  Error CheckIndex(int index) {
    int count = 0;
    RETURN_ERROR(CountDevices(&count));
    if (index >= 0 && index < count) return Error{};
    return MakeError(absl::StatusCode::kInvalidArgument, "cuda:%d: there are %d CUDA devices",
                     index, count);
  }

  std::mutex mutex_;
  std::map<int, Opened> opened_ ABSL_GUARDED_BY(mutex_);  // by device number; none is removed
};

}  // namespace
}  // namespace thinwire

extern "C" const thinwire::BackendEntry* thinwire_backend() {
  // The entry is never destroyed, because threads that outlive main still free memory.
  static const auto* const entry =
      new thinwire::BackendEntry{thinwire::BackendBuildId(), new thinwire::CudaBackend};
  return entry;
}
