// Opens a backend's shared library (plugin.h), and the device that a run asks for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "backend/plugin.h"

namespace thinwire {

// Never closed; the same path again gives the same plugin. Any thread. Errors name the path:
// NotFound for a missing file; FailedPrecondition for one that the loader refuses (with its
// reason), without our entry, or of another build (naming both builds).
absl::StatusOr<BackendPlugin*> LoadBackend(const std::string& path);

// Where the CUDA backend is looked for, in this order: libthinwire_cuda.so beside the running
// executable, in lib/ beside it, and in backend/cuda/ of the Bazel tree that it runs from.
std::vector<std::string> DefaultBackendPaths();

struct OpenedDevice {
  Device* device = nullptr;         // none of these is deleted
  CodecKernels* kernels = nullptr;  // on the CPU: single-threaded
  DirectCopies* copies = nullptr;   // null: none
  BackendPlugin* plugin = nullptr;  // makes the device's Ops; null: the CPU
  DeviceDescription description;    // empty for the CPU
  std::string note;                 // for "auto": what was taken and why, in one line
};

// `choice`: "auto", "cpu", "cuda" or "cuda:N" (device_choice.h). `backend_path` empty: the first of
// `default_paths` that exists. "auto" falls back to the CPU, unless a backend was found and
// its device cannot be opened. Errors: InvalidArgument for another text, or for a device beyond
// those there are; otherwise what was looked for, where, and why it did not work.
absl::StatusOr<OpenedDevice> OpenDevice(
    absl::string_view choice, const std::string& backend_path,
    const std::vector<std::string>& default_paths = DefaultBackendPaths());

}  // namespace thinwire
