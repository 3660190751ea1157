// A loop whose iterations are dealt to threads in one fixed way.
#pragma once

#include <omp.h>

#include <cstdint>

namespace thinwire {

// body(i) for i in [0, n): thread t takes the t-th of `threads` nearly equal shares of the
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

// body(begin, end) over [0, n) in one share a thread, or in the calling thread alone when there are
// fewer than `grain` elements: starting the others costs more than it gains.
template <typename Body>
void ParallelRange(int threads, int64_t n, int64_t grain, const Body& body) {
  if (threads == 1 || n < grain) {
    body(int64_t{0}, n);
    return;
  }
  ParallelFor(threads, threads, [&](int64_t t) { body(n * t / threads, n * (t + 1) / threads); });
}

}  // namespace thinwire
