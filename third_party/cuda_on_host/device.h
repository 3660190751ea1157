// What all calls share: the thread's device, its last error.
#pragma once

#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

// `code`, kept for cudaGetLastError unless it is cudaSuccess.
cudaError_t Noted(cudaError_t code);

int NumDevices();
int CurrentDevice();
// A variable of the environment, whole and not negative; `otherwise` when unset.
long long Setting(const char* name, long long otherwise);

}  // namespace cuda_on_host
