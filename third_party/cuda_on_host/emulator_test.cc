#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "third_party/cuda_on_host/emulator_test_kernels.h"

namespace {

// GCC has a macro, clang a feature.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
constexpr bool kAddressSanitizer = false;
#endif

using testing::Each;
using testing::ElementsAre;

// Device memory that holds a copy of `values`.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : n_(values.size()) {
    EXPECT_EQ(cudaMalloc(&memory_, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~OnDevice() { EXPECT_EQ(cudaFree(memory_), cudaSuccess); }

  T* get() { return memory_; }
  size_t bytes() const { return n_ * sizeof(T); }
  // Returns the values after all work that was submitted.
  std::vector<T> Values() {
    std::vector<T> values(n_);
    EXPECT_EQ(cudaMemcpy(values.data(), memory_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }
  // Returns value `i` as the work that has run so far left it, without running any.
  T Peek(int i) { return memory_[i]; }

 private:
  size_t n_;
  T* memory_ = nullptr;
};

std::vector<int> Counting(int n) {
  std::vector<int> values(n);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

class Order {
 public:
  explicit Order(const std::string& name) {
    setenv("THINWIRE_EMULATED_ORDER", name.c_str(), /*overwrite=*/1);
  }
  ~Order() { unsetenv("THINWIRE_EMULATED_ORDER"); }
};

class StreamTest : public testing::Test {
 protected:
  StreamTest() { EXPECT_EQ(cudaStreamCreate(&stream_), cudaSuccess); }
  ~StreamTest() override { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  cudaGraphExec_t Captured(const std::function<void()>& submit) {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    submit();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return executable;
  }

  cudaStream_t stream_ = nullptr;
};

// Tests that run in every order of threads.
class KernelTest : public testing::TestWithParam<const char*> {
 protected:
  Order order_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Orders, KernelTest, testing::Values("forward", "reverse", "shuffle"));

TEST_P(KernelTest, ThreadsMeetAtBarriers) {
  OnDevice<int> values(Counting(3 * 64));
  ASSERT_EQ(Reverse(3, values.get(), nullptr), cudaSuccess);
  const std::vector<int> reversed = values.Values();
  for (int i = 0; i < 3 * 64; ++i) EXPECT_EQ(reversed[i], i / 64 * 64 + 63 - i % 64);
}

TEST_P(KernelTest, BarriersAreMetAgainAndAgain) {
  OnDevice<int> values(Counting(1024));
  ASSERT_EQ(Rotate(values.get(), 100, nullptr), cudaSuccess);
  const std::vector<int> rotated = values.Values();
  for (int i = 0; i < 1024; ++i) EXPECT_EQ(rotated[i], (i + 100) % 1024);
}

TEST_P(KernelTest, LanesAddUpByShuffles) {
  OnDevice<int> values(Counting(2 * 256)), sums({0, 0});
  ASSERT_EQ(SumBlocks(2, values.get(), sums.get(), nullptr), cudaSuccess);
  EXPECT_THAT(sums.Values(), ElementsAre(255 * 256 / 2, 255 * 256 / 2 + 256 * 256));
}

TEST_P(KernelTest, LanesExchangeWithinSegments) {
  std::vector<int> host = Counting(64);
  for (int& value : host) value = value * value + 1;
  OnDevice<int> values(host);
  OnDevice<unsigned> results(std::vector<unsigned>(9 * 64));
  ASSERT_EQ(Exchange(values.get(), results.get(), nullptr), cudaSuccess);
  const std::vector<unsigned> found = results.Values();
  for (int i = 0; i < 64; ++i) {
    const int first = i / 16 * 16;
    EXPECT_EQ(found[0 * 64 + i], unsigned(host[first + 5]));
    EXPECT_EQ(found[1 * 64 + i], unsigned(host[i - 3 >= first ? i - 3 : i])) << i;
    EXPECT_EQ(found[2 * 64 + i], unsigned(host[i + 3 < first + 16 ? i + 3 : i])) << i;
    EXPECT_EQ(found[3 * 64 + i], unsigned(host[i ^ 1]));
    EXPECT_EQ(found[4 * 64 + i], 0x55555555u);
    EXPECT_EQ(found[5 * 64 + i], 1u);
    const auto warp = host.begin() + i / 32 * 32;
    EXPECT_EQ(found[6 * 64 + i], unsigned(-std::accumulate(warp, warp + 32, 0)));
    EXPECT_EQ(found[7 * 64 + i], unsigned(-*std::max_element(warp, warp + 32)));
    EXPECT_EQ(found[8 * 64 + i], unsigned(-*std::min_element(warp, warp + 32)));
  }
}

TEST_P(KernelTest, BarriersAskWhetherAny) {
  OnDevice<int> values(Counting(96)), found({-1, -1});
  ASSERT_EQ(FindInBlock(values.get(), found.get(), nullptr), cudaSuccess);
  EXPECT_THAT(found.Values(), ElementsAre(1, 0));
}

TEST_P(KernelTest, AtomicsGatherFromAllBlocks) {
  std::vector<int> host = Counting(1000);
  host[17] = -5;
  OnDevice<int> values(host);
  OnDevice<Totals> totals({Totals{0, 0, 0}});
  ASSERT_EQ(Total(values.get(), 1000, totals.get(), nullptr), cudaSuccess);
  const Totals total = totals.Values()[0];
  EXPECT_EQ(total.sum, 999u * 1000 / 2 - 17 - 5);
  EXPECT_EQ(total.most, 999);
  EXPECT_EQ(total.bits, static_cast<unsigned>(-5) | 1023u);
}

TEST(OrderTest, AMissingBarrierShowsInOneOrderOrTheOther) {
  std::vector<std::vector<int>> found;
  for (const char* name : {"forward", "reverse", "shuffle"}) {
    Order order(name);
    OnDevice<int> values(Counting(64));
    ASSERT_EQ(ReverseWithoutBarrier(values.get(), nullptr), cudaSuccess);
    found.push_back(values.Values());
  }
  EXPECT_EQ(found[0][0], -1);  // thread 63 has not stored yet
  EXPECT_EQ(found[1][0], 63);
  EXPECT_NE(found[0], found[1]);
  EXPECT_NE(found[0], found[2]);
  EXPECT_NE(found[1], found[2]);
}

TEST(DivergenceDeathTest, ThreadsAtDifferentBarriers) {
  EXPECT_DEATH(TwoBarriers(nullptr),
               "block \\(0, 0, 0\\): threads that must meet are at different places\n"
               "  threads 0 to 31 wait at __syncthreads, .*emulator_test_kernels.cu:[0-9]+\n"
               "  threads 32 to 32 wait at __syncthreads, .*emulator_test_kernels.cu:[0-9]+\n"
               "  threads 33 to 63 have not started\n");
}

TEST(DivergenceDeathTest, AThreadReturnsThatOthersWaitFor) {
  EXPECT_DEATH(EarlyReturn(nullptr),
               "block \\(1, 0, 0\\): threads wait for others that do not come\n"
               "  threads 0 to 39 wait at __syncthreads, .*\n"
               "  threads 40 to 40 have returned\n"
               "  threads 41 to 63 wait at __syncthreads, ");
}

TEST(DivergenceDeathTest, LanesShuffleAtDifferentPlaces) {
  OnDevice<int> value({0});
  EXPECT_DEATH(ShuffleInBranches(value.get(), nullptr),
               "threads that must meet are at different places\n"
               "  threads 0 to 0 wait at __shfl_xor_sync, ");
}

TEST(DivergenceDeathTest, HalfAWarp) {
  OnDevice<int> value({0});
  EXPECT_DEATH(ShuffleHalfWarp(value.get(), nullptr), "__shfl_sync with mask 0x0000ffff");
}

TEST_F(StreamTest, WorkRunsWhenSomebodyWaits) {
  OnDevice<float> values({0, 0});
  ASSERT_EQ(AddLine(values.get(), 2, {1, 1}, stream_), cudaSuccess);
  EXPECT_EQ(values.Peek(1), 0);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(values.Peek(1), 2);
}

TEST_F(StreamTest, WorkRunsAtOnceInEagerStreams) {
  setenv("THINWIRE_EMULATED_STREAMS", "eager", /*overwrite=*/1);
  OnDevice<float> values({0, 0});
  ASSERT_EQ(AddLine(values.get(), 2, {1, 1}, stream_), cudaSuccess);
  EXPECT_EQ(values.Peek(1), 2);
  unsetenv("THINWIRE_EMULATED_STREAMS");
}

TEST_F(StreamTest, MuchWorkDoesNotWaitForAnybody) {
  OnDevice<float> values({0});
  for (int i = 0; i < 300; ++i) AddLine(values.get(), 1, {0, 1}, stream_);
  EXPECT_GT(values.Peek(0), 0);
  EXPECT_EQ(values.Values()[0], 300);
}

TEST_F(StreamTest, EventsMeasureTime) {
  OnDevice<float> values({0});
  cudaEvent_t start, end;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  cudaEventRecord(start, stream_);
  AddLine(values.get(), 1, {0, 1}, stream_);
  cudaEventRecord(end, stream_);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(values.Peek(0), 1);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GT(milliseconds, 0);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  ASSERT_EQ(cudaEventCreateWithFlags(&start, cudaEventDisableTiming), cudaSuccess);
  cudaEventRecord(start, stream_);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, start), cudaErrorInvalidResourceHandle);
  cudaEventDestroy(start);
  cudaGetLastError();
}

TEST_F(StreamTest, AskingLetsWorkGoOn) {
  OnDevice<float> values({0});
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  AddLine(values.get(), 1, {0, 1}, stream_);
  AddLine(values.get(), 1, {0, 1}, stream_);
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  AddLine(values.get(), 1, {0, 1}, stream_);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(values.Peek(0), 1);
  while (cudaEventQuery(event) == cudaErrorNotReady) {
  }
  EXPECT_EQ(values.Peek(0), 2);
  while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
  }
  EXPECT_EQ(values.Peek(0), 3);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // not being ready is no error
  cudaEventDestroy(event);
}

TEST_F(StreamTest, AGraphRepeatsWhatWasCaptured) {
  OnDevice<float> values({0, 0, 0});
  float last = -1;
  Pair pair = {10, 1};
  const cudaGraphExec_t graph = Captured([&] {
    cudaMemsetAsync(values.get(), 0, 4, stream_);
    EXPECT_EQ(AddLine(values.get(), 3, pair, stream_), cudaSuccess);
    cudaMemcpyAsync(&last, values.get() + 2, 4, cudaMemcpyDeviceToHost, stream_);
  });
  pair = {0, 0};  // the arguments were copied
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(values.Peek(2), 0) << "capturing runs nothing";
  for (int run = 1; run <= 3; ++run) {
    ASSERT_EQ(cudaGraphLaunch(graph, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_THAT(values.Values(), ElementsAre(1, 11 * run, 21 * run));
    EXPECT_EQ(last, 21 * run);
  }
  ASSERT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_F(StreamTest, WaitingForACapturingStreamLosesTheCapture) {
  OnDevice<float> values({0});
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(AddLine(values.get(), 1, {1, 1}, stream_), cudaErrorStreamCaptureInvalidated);
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(stream_, &status);
  EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(AddLine(values.get(), 1, {1, 1}, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  cudaGetLastError();
}

TEST_F(StreamTest, NobodyWaitsForAnEventInACapture) {
  cudaEvent_t event;
  cudaEventCreate(&event);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  cudaEventDestroy(event);
  cudaGetLastError();
}

TEST_F(StreamTest, ACaptureEndsOnTheThreadThatBeganIt) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaGraph_t graph = nullptr;
  std::thread([&] {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 4),
              cudaSuccess);  // another thread's thread-local capture does not forbid it
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(StreamTest, AllocatingWhileAThreadCapturesWantsTheRelaxedMode) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  int* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_F(StreamTest, FreedMemoryStaysUntilTheStreamGetsThere) {
  setenv("THINWIRE_EMULATED_MEMORY", "1000", /*overwrite=*/1);
  void *first = nullptr, *second = nullptr;
  size_t free, total;
  ASSERT_EQ(cudaMallocAsync(&first, 600, stream_), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&second, 401, stream_), cudaErrorMemoryAllocation);
  EXPECT_EQ(second, nullptr);
  ASSERT_EQ(cudaFreeAsync(first, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(first, stream_), cudaErrorInvalidValue);
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, 400u);
  EXPECT_EQ(total, 1000u);
  EXPECT_EQ(cudaMallocAsync(&second, 1000, stream_),
            cudaSuccess);  // runs the stream's work to free memory
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, 1000u);
  unsetenv("THINWIRE_EMULATED_MEMORY");
  cudaGetLastError();
}

TEST_F(StreamTest, NothingCanBeSubmittedForFreedMemory) {
  int* gone = nullptr;
  ASSERT_EQ(cudaMallocAsync(&gone, 4, stream_), cudaSuccess);
  ASSERT_EQ(Store(gone, 0, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(gone, stream_), cudaSuccess);
  EXPECT_EQ(Store(gone, 0, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(gone, 0, 4, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  cudaGetLastError();
}

TEST(MemoryTest, IsAlignedAndFullOfNans) {
  for (const size_t bytes : {size_t{4}, size_t{100}, size_t{4096}}) {
    float* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
    std::vector<float> values(bytes / 4);
    cudaMemcpy(values.data(), memory, bytes, cudaMemcpyDeviceToHost);
    EXPECT_THAT(values, Each(testing::IsNan()));
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }
}

TEST(MemoryTest, CopiesNameTheirDirection) {
  OnDevice<int> values(Counting(4));
  int host[5];
  EXPECT_EQ(cudaMemcpy(host, values.get(), 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(host, values.get(), 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(values.get(), host, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, values.get(), 20, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(values.get() + 1, 0, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(LaunchTest, RefusesTheHostsMemoryAndOddBlocks) {
  int on_host = 0;
  EXPECT_EQ(Store(&on_host, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(SumBlocks(0, nullptr, nullptr, nullptr), cudaErrorInvalidConfiguration);
  int* locked = nullptr;
  ASSERT_EQ(cudaHostAlloc(&locked, 4, cudaHostAllocDefault), cudaSuccess);
  EXPECT_EQ(Store(locked, 0, nullptr), cudaSuccess);
  EXPECT_EQ(*locked, 1);
  EXPECT_EQ(cudaFreeHost(locked), cudaSuccess);
  cudaGetLastError();
}

TEST(LaunchDeathTest, TheAddressSanitizerSeesKernels) {
  if (!kAddressSanitizer) GTEST_SKIP() << "built without it";
  OnDevice<int> values(Counting(3));
  EXPECT_DEATH(Store(values.get(), 3, nullptr), "heap-buffer-overflow");
}

TEST(DeviceTest, CountsAndDescribes) {
  setenv("THINWIRE_EMULATED_DEVICES", "2", /*overwrite=*/1);
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_STREQ(cudaGetErrorString(cudaGetLastError()), "invalid device ordinal");
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_STREQ(properties.name, "emulated GPU");
  unsetenv("THINWIRE_EMULATED_DEVICES");
}

// Runs in another process and returns its exit status.
int InAnotherProcess(const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class IpcTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 2 << 20;

  IpcTest() {
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory_, 7, kBytes), cudaSuccess);
    EXPECT_EQ(cudaIpcGetMemHandle(&handle_, memory_), cudaSuccess);
  }
  ~IpcTest() override {
    if (memory_ != nullptr) {
      EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    }
  }
  static cudaError_t Open(const cudaIpcMemHandle_t& handle, void** opened) {
    return cudaIpcOpenMemHandle(opened, handle, cudaIpcMemLazyEnablePeerAccess);
  }

  char* memory_ = nullptr;
  cudaIpcMemHandle_t handle_ = {};
};

TEST_F(IpcTest, AnotherProcessHasTheSameMemory) {
  const int status = InAnotherProcess([this] {
    void* opened = nullptr;
    if (Open(handle_, &opened) != cudaSuccess) return 1;
    char* const bytes = static_cast<char*>(opened);
    if (bytes[0] != 7 || bytes[kBytes - 1] != 7) return 2;
    if (cudaMemset(bytes + kBytes - 10, 8, 10) != cudaSuccess) return 3;
    if (cudaMemset(bytes + kBytes - 10, 8, 11) != cudaErrorInvalidValue) return 4;
    if (cudaFree(opened) != cudaErrorInvalidValue) return 5;
    return cudaIpcCloseMemHandle(opened) == cudaSuccess ? 0 : 6;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory_[kBytes - 11], 7);
  EXPECT_EQ(memory_[kBytes - 10], 8);
}

TEST_F(IpcTest, OpenedTwiceItIsClosedTwice) {
  const int status = InAnotherProcess([this] {
    void *first = nullptr, *second = nullptr;
    if (Open(handle_, &first) != cudaSuccess || Open(handle_, &second) != cudaSuccess) return 1;
    if (first != second || cudaIpcCloseMemHandle(first) != cudaSuccess) return 2;
    if (static_cast<char*>(second)[0] != 7) return 3;
    if (cudaIpcCloseMemHandle(first) != cudaSuccess) return 4;
    return cudaIpcCloseMemHandle(first) == cudaErrorInvalidValue ? 0 : 5;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(IpcTest, FreedMemoryCannotBeOpened) {
  EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  memory_ = nullptr;
  const int status = InAnotherProcess([this] {
    void* opened = nullptr;
    return Open(handle_, &opened) == cudaErrorMapBufferObjectFailed ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(IpcTest, WhatItIsNotForIsRefused) {
  void* opened = nullptr;
  EXPECT_EQ(Open(handle_, &opened), cudaErrorDeviceUninitialized);  // in the same process
  EXPECT_EQ(Open({}, &opened), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle_, memory_ + 256), cudaErrorInvalidValue);
  OnDevice<int> small(Counting(64));
  EXPECT_EQ(cudaIpcGetMemHandle(&handle_, small.get()), cudaErrorInvalidValue);
  setenv("THINWIRE_EMULATED_IPC", "0", /*overwrite=*/1);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle_, memory_), cudaErrorNotSupported);
  EXPECT_EQ(Open(handle_, &opened), cudaErrorNotSupported);
  unsetenv("THINWIRE_EMULATED_IPC");
}

TEST(ThreadsTest, HostThreadsRunKernelsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      OnDevice<int> values(Counting(1024));
      for (int i = 0; i < 10; ++i) Rotate(values.get(), 10, stream);
      cudaStreamSynchronize(stream);
      EXPECT_EQ(values.Peek(0), 100);
      EXPECT_EQ(values.Peek(1023), 99);
      cudaStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
