// Kernels that show what an emulator must do, each with a function that launches it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

struct Pair {
  int first;
  int second;
};

// Launches blocks of 64; each reverses its values through shared memory.
cudaError_t Reverse(int blocks, int* values, cudaStream_t stream);
// Launches blocks of 256: sums[block] = the sum of its values, by shuffles within warps.
cudaError_t SumBlocks(int blocks, const int* values, int* sums, cudaStream_t stream);
// Launches one block of 64 whose lanes exchange values within segments of 16. results[r][i] is, for
// r = 0 .. 3, the value of lane 5, of the lane 3 below, of the lane 3 above, and of lane i xor 1.
// For r = 4 it has a bit for each lane of the warp whose value is odd; for r = 5 it says whether
// all values of the warp are positive.
cudaError_t Exchange(const int* values, unsigned* results, cudaStream_t stream);
// Launches one block of 96: found[0] = whether any value is 7, found[1] = whether any is -7.
cudaError_t FindInBlock(const int* values, int* found, cudaStream_t stream);
// Sum, greatest and bitwise or of n values, over several blocks.
struct Totals {
  unsigned long long sum;
  int most;
  unsigned bits;
};
cudaError_t Total(const int* values, int n, Totals* totals, cudaStream_t stream);
// Computes values[i] += pair.first * i + pair.second.
cudaError_t AddLine(float* values, int n, Pair pair, cudaStream_t stream);
// Launches one block of 1024: rotates the values by one, `rounds` times, through shared memory.
cudaError_t Rotate(int* values, int rounds, cudaStream_t stream);

// Kernels with faults, which the emulator must show or refuse.

// Launches one block of 64: values[i] = what thread 63 - i stored, without a barrier before it is
// read.
cudaError_t ReverseWithoutBarrier(int* values, cudaStream_t stream);
// Launches one block of 64: its first warp waits at another barrier than the second.
cudaError_t TwoBarriers(cudaStream_t stream);
// Launches two blocks of 64: in the second, thread 40 returns before the barrier.
cudaError_t EarlyReturn(cudaStream_t stream);
// Launch one block of 32: its lanes shuffle at different places, or with half a mask.
cudaError_t ShuffleInBranches(int* value, cudaStream_t stream);
cudaError_t ShuffleHalfWarp(int* value, cudaStream_t stream);
// Launches one block of 32: every thread writes values[i].
cudaError_t Store(int* values, int64_t i, cudaStream_t stream);
