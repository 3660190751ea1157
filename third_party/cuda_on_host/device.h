// State that all calls share: the thread's current device and its last error.
#pragma once

#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

// Returns `code` and keeps it for cudaGetLastError, unless it is cudaSuccess.
cudaError_t Noted(cudaError_t code);

int NumDevices();
int CurrentDevice();
// Returns the environment variable `name`, or `otherwise` when it is unset or empty. Aborts unless
// it is a whole number and not negative.
long long Setting(const char* name, long long otherwise);

}  // namespace cuda_on_host
