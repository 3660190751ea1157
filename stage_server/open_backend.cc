#include "stage_server/open_backend.h"

#include "absl/strings/str_cat.h"
#include "backend/load.h"
#include "base/status.h"
#include "compress/cpu/kernels.h"
#include "nn/cpu/ops.h"

namespace thinwire {
namespace {

constexpr int kMaxThreads = 1024;  // as in an experiment file

}  // namespace

absl::StatusOr<Backend> OpenBackend(const BackendRequest& request, const std::string& cuda_plugin) {
  if (request.threads < 1 || request.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: ", request.threads, ", want 1 to ", kMaxThreads));
  }
  ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(request.device, cuda_plugin));
  Backend backend;
  backend.device = opened.device;
  backend.kernels = opened.kernels;
  backend.copies = opened.copies;
  backend.plugin = opened.plugin;
  backend.description = opened.description;
  backend.note = opened.note;
  if (opened.plugin != nullptr) {
    Ops* ops = nullptr;
    RETURN_IF_ERROR(ToStatus(opened.plugin->NewOps(opened.device, request.ops, &ops)));
    backend.ops.reset(ops);
    return backend;
  }
  if (request.ops.tf32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "precision tf32 on device ", opened.device->name(), ", want fp32 or bf16, or a GPU"));
  }
  backend.ops = NewCpuOps(request.threads);
  backend.threaded_kernels = NewCpuCodecKernels(request.threads);
  return backend;
}

}  // namespace thinwire
