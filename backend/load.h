// Opens a backend's shared library (plugin.h) and the device that a run asks for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "backend/plugin.h"

namespace thinwire {

// Loads the plugin at `path`. It is never closed, and the same path again gives the same plugin.
// Any thread may call this. Every error names the path. Returns NotFound for a missing file.
// Returns FailedPrecondition for a file that the dynamic loader refuses (with its reason), that has
// no thinwire_backend, or that is of another build (naming both builds).
absl::StatusOr<BackendPlugin*> LoadBackend(const std::string& path);

// Returns the paths where the CUDA backend is looked for, in order. libthinwire_cuda.so may lie
// beside the running executable, in lib/ beside it, or in backend/cuda/ of the executable's Bazel
// tree.
std::vector<std::string> DefaultBackendPaths();

// Device that a run uses, with its parts. The caller deletes none of them.
struct OpenedDevice {
  Device* device = nullptr;
  CodecKernels* kernels = nullptr;  // on the CPU: single-threaded
  DirectCopies* copies = nullptr;   // null where the device has none
  BackendPlugin* plugin = nullptr;  // makes the device's Ops; null for the CPU
  DeviceDescription description;    // empty for the CPU
  std::string note;                 // for "auto", one line that says which device was taken and why
};

// Opens the device for `choice`: "auto", "cpu", "cuda" or "cuda:N" (device_choice.h). The backend
// is loaded from `backend_path`; if that is empty, from the first of `default_paths` that exists.
// "auto" falls back to the CPU, unless a backend was found and its device cannot be opened. Returns
// InvalidArgument for another text and for a device beyond those that exist. Other errors say what
// was looked for, where, and why it did not work.
absl::StatusOr<OpenedDevice> OpenDevice(
    absl::string_view choice, const std::string& backend_path,
    const std::vector<std::string>& default_paths = DefaultBackendPaths());

}  // namespace thinwire
