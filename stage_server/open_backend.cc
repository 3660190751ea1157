#include "stage_server/open_backend.h"

#include "absl/strings/str_cat.h"
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
  Backend backend;
  ASSIGN_OR_RETURN(static_cast<OpenedDevice&>(backend), OpenDevice(request.device, cuda_plugin));
  if (backend.plugin != nullptr) {
    Ops* ops = nullptr;
    RETURN_IF_ERROR(ToStatus(backend.plugin->NewOps(backend.device, request.ops, &ops)));
    backend.ops.reset(ops);
    backend.host_ops = NewCpuOps(request.threads);
    return backend;
  }
  if (request.ops.tf32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "precision tf32 on device ", backend.device->name(), ", want fp32 or bf16, or a GPU"));
  }
  backend.ops = NewCpuOps(request.threads);
  backend.threaded_kernels = NewCpuCodecKernels(request.threads);
  return backend;
}

}  // namespace thinwire
