#include "compress/cpu/parallel.h"

#ifdef __SANITIZE_THREAD__
#include <thread>
#include <vector>
#endif

namespace thinwire {

#ifdef __SANITIZE_THREAD__

// The thread sanitizer does not see how OpenMP's threads wait for each other; with plain threads it
// finds races.
void RunParts(int count, void (*run)(const void* body, int part), const void* body) {
  std::vector<std::thread> others;
  for (int part = 1; part < count; ++part) others.emplace_back(run, body, part);
  run(body, 0);
  for (std::thread& other : others) other.join();
}

#else

// Runs parts on OpenMP's threads. If one thread computes layers and codecs in turn, layers use the
// same threads.
void RunParts(int count, void (*run)(const void* body, int part), const void* body) {
#pragma omp parallel for num_threads(count) schedule(static)
  for (int part = 0; part < count; ++part) run(body, part);
}

#endif

}  // namespace thinwire
