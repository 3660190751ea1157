#include "backend/load.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backend/build_id.h"
#include "backend/device_choice.h"
#include "base/status.h"
#include "compress/cpu/kernels.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr char kLibrary[] = "libthinwire_cuda.so";
constexpr char kEntry[] = "thinwire_backend";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

absl::StatusOr<BackendPlugin*> LoadFirst(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (Exists(path)) return LoadBackend(path);
  }
  return absl::NotFoundError(absl::StrCat(kLibrary, " is at none of ", absl::StrJoin(paths, ", ")));
}

absl::StatusOr<int> CountDevices(BackendPlugin* plugin) {
  int count = 0;
  RETURN_IF_ERROR(ToStatus(plugin->CountDevices(&count)));
  return count;
}

OpenedDevice OpenCpu(std::string note) {
  OpenedDevice opened;
  opened.device = CpuDevice();
  opened.kernels = CpuCodecKernels();
  opened.note = std::move(note);
  return opened;
}

absl::StatusOr<OpenedDevice> OpenOf(BackendPlugin* plugin, DeviceDecision decision) {
  OpenedDevice opened;
  opened.plugin = plugin;
  opened.note = std::move(decision.note);
  RETURN_IF_ERROR(ToStatus(plugin->Describe(decision.index, &opened.description)));
  RETURN_IF_ERROR(
      ToStatus(plugin->Open(decision.index, &opened.device, &opened.kernels, &opened.copies)));
  return opened;
}

}  // namespace

absl::StatusOr<BackendPlugin*> LoadBackend(const std::string& path) {
  // dlopen would look for a name without a slash in the system's folders.
  std::error_code ignored;
  const std::string absolute = std::filesystem::absolute(path, ignored).string();
  if (!Exists(absolute)) {
    return absl::NotFoundError(absl::StrCat("backend ", absolute, ": no such file"));
  }
  // The library is never closed, because its tensors, threads and code stay in use.
  void* const library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("backend ", absolute, ": ", dlerror()));
  }
  void* const entry_point = dlsym(library, kEntry);
  if (entry_point == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("backend ", absolute, ": has no symbol ", kEntry));
  }
  const BackendEntry* const entry = reinterpret_cast<decltype(&thinwire_backend)>(entry_point)();
  if (absl::string_view(entry->build_id) != BackendBuildId()) {
    return absl::FailedPreconditionError(absl::StrCat("backend ", absolute, ": is of build ",
                                                      entry->build_id, ", this program of build ",
                                                      BackendBuildId()));
  }
  return entry->plugin;
}

std::vector<std::string> DefaultBackendPaths() {
  std::error_code ignored;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<std::string> paths = {(folder / kLibrary).string(),
                                    (folder / "lib" / kLibrary).string()};
  // A program may lie in .../bazel-out/k8-opt/bin/stage_server; the outputs of all folders lie
  // below such a bin.
  for (auto above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (above.filename() != "bin" || above.parent_path().parent_path().filename() != "bazel-out") {
      continue;
    }
    paths.push_back((above / "backend" / "cuda" / kLibrary).string());
  }
  return paths;
}

absl::StatusOr<OpenedDevice> OpenDevice(absl::string_view choice, const std::string& backend_path,
                                        const std::vector<std::string>& default_paths) {
  ASSIGN_OR_RETURN(const DeviceChoice wanted, ParseDeviceChoice(choice));
  if (wanted.kind == DeviceChoice::Kind::kCpu) return OpenCpu("");
  const absl::StatusOr<BackendPlugin*> plugin =
      backend_path.empty() ? LoadFirst(default_paths) : LoadBackend(backend_path);
  absl::StatusOr<int> devices = plugin.ok() ? CountDevices(*plugin) : plugin.status();
  // A machine without a GPU usually has no backend; "auto" then needs no list of paths in its note.
  if (wanted.kind == DeviceChoice::Kind::kAuto && backend_path.empty() &&
      absl::IsNotFound(plugin.status())) {
    devices = absl::NotFoundError(absl::StrCat(kLibrary, " is not installed"));
  }
  ASSIGN_OR_RETURN(DeviceDecision decision, DecideDevice(wanted, devices));
  if (decision.index < 0) return OpenCpu(std::move(decision.note));
  return OpenOf(*plugin, std::move(decision));
}

}  // namespace thinwire
