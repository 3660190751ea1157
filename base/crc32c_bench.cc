// Measures bytes per second of the checksum, alone and with a copy, and of memcpy of the same
// buffer.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/crc32c.h"

namespace thinwire {
namespace {

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_Memcpy(benchmark::State& state) {
  std::vector<char> from(state.range(0), 1), to(state.range(0));
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void BM_Crc32c(benchmark::State& state) {
  std::vector<char> from(state.range(0), 1);
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(from.data(), from.size()));
  SetBytes(state);
}

void BM_Crc32cAndCopy(benchmark::State& state) {
  std::vector<char> from(state.range(0), 1), to(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(ExtendCrc32cAndCopy(0, to.data(), from.data(), from.size()));
  }
  SetBytes(state);
}

void BM_CopyThenCrc32c(benchmark::State& state) {
  std::vector<char> from(state.range(0), 1), to(state.range(0));
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(Crc32c(to.data(), to.size()));
  }
  SetBytes(state);
}

BENCHMARK(BM_Memcpy)->Arg(64 << 10)->Arg(4 << 20);
BENCHMARK(BM_Crc32c)->Arg(64 << 10)->Arg(4 << 20);
BENCHMARK(BM_Crc32cAndCopy)->Arg(64 << 10)->Arg(4 << 20);
BENCHMARK(BM_CopyThenCrc32c)->Arg(64 << 10)->Arg(4 << 20);

}  // namespace
}  // namespace thinwire
