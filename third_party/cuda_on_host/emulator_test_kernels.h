// Kernels that show what an emulator must do, each with its launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

struct Pair {
  int first;
  int second;
};

// Blocks of 64: each reverses its values through shared memory.
cudaError_t Reverse(int blocks, int* values, cudaStream_t stream);
// Blocks of 256: sums[block] = the sum of its values, by shuffles within warps.
cudaError_t SumBlocks(int blocks, const int* values, int* sums, cudaStream_t stream);
// One block of 64. results[r][i], r = 0 .. 5: lane 5's value, up by 3, down by 3, xor 1, each
// within segments of 16; lanes of the warp whose value is odd; whether all values are positive.
cudaError_t Exchange(const int* values, unsigned* results, cudaStream_t stream);
// One block of 96: counts[0] = how many values are odd, then whether any is 7, whether all are.
cudaError_t CountBlock(const int* values, int* counts, cudaStream_t stream);
// Adds up, finds the extremes of, and ors together n values from many blocks.
struct Totals {
  unsigned long long sum;
  int least;
  int most;
  unsigned bits;
};
cudaError_t Total(const int* values, int n, Totals* totals, cudaStream_t stream);
// values[i] += pair.first * i + pair.second
cudaError_t AddLine(float* values, int n, Pair pair, cudaStream_t stream);
// One block of 1024: `rounds` times a rotation by one through shared memory.
cudaError_t Rotate(int* values, int rounds, cudaStream_t stream);

// Wrong kernels.

// One block of 64: copied[i] = the value that thread 63 - i stored, without waiting for it.
cudaError_t ReverseWithoutBarrier(int* values, cudaStream_t stream);
// One block of 64: the first warp waits for the second at another barrier than the second does.
cudaError_t TwoBarriers(cudaStream_t stream);
// Two blocks of 64: in the second, thread 40 returns before the barrier.
cudaError_t EarlyReturn(cudaStream_t stream);
// One block of 32: lanes shuffle at different places, or with half a mask.
cudaError_t ShuffleInBranches(int* value, cudaStream_t stream);
cudaError_t ShuffleHalfWarp(int* value, cudaStream_t stream);
// One block of 32: writes values[i].
cudaError_t Store(int* values, int64_t i, cudaStream_t stream);
