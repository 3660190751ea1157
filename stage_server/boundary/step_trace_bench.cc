// Measures the cost of a slice where nothing is traced and where it is.

#include <benchmark/benchmark.h>

#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/step_trace.h"

namespace thinwire {
namespace {

// Measures two readings of the clock: what an activity costs without any trace.
void BM_Clock(benchmark::State& state) {
  double seconds = 0;
  for (auto _ : state) {
    const SteadyTime start = SteadyTime::Now();
    benchmark::ClobberMemory();
    seconds += SecondsSince(start);
  }
  benchmark::DoNotOptimize(seconds);
}
BENCHMARK(BM_Clock);

void BM_Timer(benchmark::State& state, bool is_traced) {
  StepTrace trace(1, 1, size_t{1} << 15);
  PlannedSlice slice;
  if (is_traced) slice.trace = &trace;
  slice.slice.name = "forward";
  double seconds = 0;
  size_t count = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(slice);
    { ScopedTimer timer(&seconds, slice.At(1, DIRECTION_ACTIVATION)); }
    if (is_traced && ++count % (size_t{1} << 14) == 0) trace.Take();
  }
  benchmark::DoNotOptimize(seconds);
}
BENCHMARK_CAPTURE(BM_Timer, off, false);
BENCHMARK_CAPTURE(BM_Timer, on, true);

// Measures what times layers, which also asks the kernel for waits and processor time.
void BM_Stopwatch(benchmark::State& state) {
  double seconds = 0, core_wait = 0;
  for (auto _ : state) {
    const Stopwatch stopwatch;
    const Stopwatch::Reading reading = stopwatch.Read();
    seconds += reading.seconds;
    core_wait += reading.core_wait_seconds;
  }
  benchmark::DoNotOptimize(seconds + core_wait);
}
BENCHMARK(BM_Stopwatch);

// Measures a message's slice, whose seconds are counted nowhere.
void BM_Slice(benchmark::State& state, bool is_traced) {
  StepTrace trace(1, 1, size_t{1} << 15);
  PlannedSlice slice;
  if (is_traced) slice.trace = &trace;
  size_t count = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(slice);
    { const ScopedTimer scoped(/*seconds=*/nullptr, slice); }
    if (is_traced && ++count % (size_t{1} << 14) == 0) trace.Take();
  }
}
BENCHMARK_CAPTURE(BM_Slice, off, false);
BENCHMARK_CAPTURE(BM_Slice, on, true);

}  // namespace
}  // namespace thinwire
