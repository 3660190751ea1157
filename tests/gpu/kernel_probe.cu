// Tells whether this machine runs a kernel of this build at all: it launches one and reads back its
// result. It is linked with CUDA's runtime and nothing else. So a failure here comes from the
// driver, the machine or the build's choice of GPUs; a failure elsewhere does not.
// usage: kernel_probe
#include <cuda_runtime.h>

#include <cstdio>

namespace {

constexpr int kThreads = 64;

__global__ void WriteSquares(int* squares) {
  const int i = static_cast<int>(threadIdx.x);
  squares[i] = i * i;
}

bool Did(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return true;
  fprintf(stderr, "kernel_probe: %s: %s: %s\n", call, cudaGetErrorName(code),
          cudaGetErrorString(code));
  return false;
}
#define DID(call) Did(call, #call)

bool RunsKernels() {
  int* squares = nullptr;
  int found[kThreads] = {};
  if (!DID(cudaMalloc(reinterpret_cast<void**>(&squares), sizeof(found)))) return false;
  void* arguments[] = {&squares};
  const bool is_done = Did(cudaLaunchKernel(WriteSquares, dim3(1), dim3(kThreads), arguments, 0,
                                            /*stream=*/nullptr),
                           "cudaLaunchKernel") &&
                       DID(cudaDeviceSynchronize()) &&
                       DID(cudaMemcpy(found, squares, sizeof(found), cudaMemcpyDeviceToHost));
  if (!is_done || !DID(cudaFree(squares))) return false;
  for (int i = 0; i < kThreads; ++i) {
    if (found[i] == i * i) continue;
    fprintf(stderr, "kernel_probe: the kernel left %d at %d, want %d\n", found[i], i, i * i);
    return false;
  }
  return true;
}

}  // namespace

int main() {
  int driver = 0, runtime = 0, count = 0;
  cudaDeviceProp properties;
  if (!DID(cudaDriverGetVersion(&driver)) || !DID(cudaRuntimeGetVersion(&runtime))) return 1;
  if (driver == 0) printf("no NVIDIA driver\n");
  printf("driver for CUDA %d.%d, runtime %d.%d\n", driver / 1000, driver % 1000 / 10,
         runtime / 1000, runtime % 1000 / 10);
  if (!DID(cudaGetDeviceCount(&count))) return 1;
  if (!DID(cudaGetDeviceProperties(&properties, 0))) return 1;
  printf("%d devices, the first: %s, compute capability %d.%d\n", count, properties.name,
         properties.major, properties.minor);
  fflush(stdout);
  if (!RunsKernels()) return 1;
  printf("runs kernels\n");
  return 0;
}
