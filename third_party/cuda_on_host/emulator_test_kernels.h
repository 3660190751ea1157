// Kernels that show how threads work together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Each block reverses its 64 values through shared memory.
cudaError_t Reverse(dim3 grid, int* values, cudaStream_t stream);
// sums[block] = the sum of its 256 values, by shuffles within warps and then shared memory.
cudaError_t SumBlocks(dim3 grid, const int* values, int* sums, cudaStream_t stream);
