// Loops whose iterations are assigned to threads in one fixed way.
#pragma once

#include <omp.h>

#include <cstdint>

namespace thinwire {

// Calls body(i) for i in [0, n). Thread t takes the t-th of `threads` nearly equal shares of the
// iterations.
template <typename Body>
void ParallelFor(int threads, int64_t n, const Body& body) {
  if (threads == 1 || n <= 1) {
    for (int64_t i = 0; i < n; ++i) body(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < n; ++i) body(i);
}

// Calls body(begin, end) for one share of [0, n) per thread. If there are fewer than `grain`
// elements, the calling thread does all: starting the others would cost more than it gains.
template <typename Body>
void ParallelRange(int threads, int64_t n, int64_t grain, const Body& body) {
  if (threads == 1 || n < grain) {
    body(int64_t{0}, n);
    return;
  }
  ParallelFor(threads, threads, [&](int64_t t) { body(n * t / threads, n * (t + 1) / threads); });
}

}  // namespace thinwire
