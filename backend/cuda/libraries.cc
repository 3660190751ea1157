#include "backend/cuda/libraries.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <vector>

namespace thinwire {
namespace {

// Returns the version as the libraries' manuals spell it: "9.19.0" for 91900.
std::string Spelled(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// Returns where cuDNN looks for NVRTC: on the system's paths, then beside itself.
std::vector<std::string> NvrtcPaths() {
  const std::string major = std::to_string(cudnnGetCudartVersion() / 1000);
  const std::string name = "libnvrtc.so." + major;
  std::vector<std::string> paths = {name};
  Dl_info cudnn;
  if (dladdr(reinterpret_cast<void*>(&cudnnGetVersion), &cudnn) == 0) return paths;
  const std::string path = cudnn.dli_fname;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (folder.empty()) return paths;
  paths.push_back(folder + name);
  paths.push_back(folder + "../../cuda_nvrtc/lib/" + name);
  paths.push_back(folder + "../../cu" + major + "/lib/" + name);
  return paths;
}

// Returns the version of NVRTC, or "no NVRTC". cuDNN compiles kernels with NVRTC, and there are
// plans that it cannot make without.
std::string Nvrtc() {
  for (const std::string& path : NvrtcPaths()) {
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    const auto version = reinterpret_cast<int (*)(int*, int*)>(dlsym(library, "nvrtcVersion"));
    int major = 0, minor = 0;
    if (version != nullptr) (void)version(&major, &minor);
    (void)dlclose(library);
    return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
  }
  return "no NVRTC";
}

}  // namespace

std::string ArithmeticLibraries() {
  return "cuDNN " + Spelled(cudnnGetVersion()) + ", " + Nvrtc() + ", cuBLAS " +
         Spelled(cublasLtGetVersion());
}

}  // namespace thinwire
