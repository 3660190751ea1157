// Runs on the emulator, and with --config=cuda on a GPU.

#include "tensor/cuda/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;
constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;

absl::StatusCode CodeOf(const Error& error) { return static_cast<absl::StatusCode>(error.code); }

#define ASSERT_OK(expression)                   \
  do {                                          \
    const Error error_ = (expression);          \
    ASSERT_TRUE(error_.ok()) << error_.message; \
  } while (false)

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("THINWIRE_EMULATED_MEMORY", "67108864", /*overwrite=*/1);
    static CudaDevice* opened = nullptr;
    if (opened == nullptr) {
      const Error error = NewCudaDevice(0, &opened);
      if (CodeOf(error) == absl::StatusCode::kUnavailable) GTEST_SKIP() << error.message;
      ASSERT_OK(error);
    }
    device_ = opened;
    bytes_before_ = device_->bytes_in_use();
    host_bytes_before_ = device_->host()->bytes_in_use();
  }
  // Makes a test that leaks fail itself, and not those after it.
  void TearDown() override {
    if (device_ == nullptr || HasFailure()) return;
    EXPECT_EQ(BytesInUse(), 0u);
    EXPECT_EQ(HostBytesInUse(), 0u);
  }

  // Returns the bytes allocated since the test began.
  size_t BytesInUse() const { return device_->bytes_in_use() - bytes_before_; }
  size_t HostBytesInUse() const { return device_->host()->bytes_in_use() - host_bytes_before_; }

  void* Allocate(size_t bytes) {
    void* memory = nullptr;
    const Error error = device_->Allocate(bytes, &memory);
    EXPECT_TRUE(error.ok()) << error.message;
    return memory;
  }

  std::unique_ptr<Recorder> NewRecorder() {
    Recorder* recorder = nullptr;
    EXPECT_TRUE(device_->NewRecorder(&recorder).ok());
    return std::unique_ptr<Recorder>(recorder);
  }

  Error Fill(void* memory, int value, size_t bytes) {
    cudaStream_t stream = nullptr;
    RETURN_ERROR(device_->Stream(&stream));
    return CudaErrorOf(cudaMemsetAsync(memory, value, bytes, stream));
  }
  static Error CudaErrorOf(cudaError_t code) {
    if (code == cudaSuccess) return Error{};
    return MakeError(absl::StatusCode::kInternal, "%s", cudaGetErrorString(code));
  }

  std::string Read(const void* memory, size_t bytes) {
    std::string read(bytes, '?');
    const Error error = device_->CopyToHost(read.data(), memory, bytes);
    EXPECT_TRUE(error.ok()) << error.message;
    return read;
  }

  cudaStream_t StreamHere() {
    cudaStream_t stream = nullptr;
    EXPECT_TRUE(device_->Stream(&stream).ok());
    return stream;
  }

  CudaDevice* device_ = nullptr;

 private:
  size_t bytes_before_ = 0, host_bytes_before_ = 0;
};

TEST_F(CudaDeviceTest, SaysWhatItIs) {
  EXPECT_STREQ(device_->name(), "cuda:0");
  EXPECT_EQ(device_->index(), 0);
  EXPECT_FALSE(device_->is_host());
  EXPECT_GT(device_->multiprocessors(), 0);
}

// Many stage processes may share few cores, so waiting threads must sleep.
TEST_F(CudaDeviceTest, ThreadsThatWaitForItSleep) {
  unsigned flags = 0;
  ASSERT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  EXPECT_EQ(flags & cudaDeviceScheduleMask, cudaDeviceScheduleBlockingSync);
}

TEST_F(CudaDeviceTest, ANumberWithoutADeviceIsRefused) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  CudaDevice* device = nullptr;
  const Error error = NewCudaDevice(count, &device);
  EXPECT_EQ(CodeOf(error), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(HasSubstr("cuda:" + std::to_string(count)),
                                   HasSubstr("there " + std::string(count == 1 ? "is " : "are ") +
                                             std::to_string(count) + " CUDA device")));
}

TEST_F(CudaDeviceTest, BytesComeBackAsTheyWent) {
  const std::string sent = "compressed activations";
  void* const memory = Allocate(sent.size());
  ASSERT_OK(device_->CopyFromHost(memory, sent.data(), sent.size()));
  EXPECT_EQ(Read(memory, sent.size()), sent);
  device_->Free(memory);
}

TEST_F(CudaDeviceTest, SubmittedCopiesAreThereAfterFinish) {
  void* sent = nullptr;
  void* received = nullptr;
  ASSERT_OK(device_->host()->Allocate(4, &sent));
  ASSERT_OK(device_->host()->Allocate(4, &received));
  memcpy(sent, "grad", 4);
  void* const memory = Allocate(4);
  ASSERT_OK(device_->SubmitCopyFromHost(memory, sent, 4));
  ASSERT_OK(device_->SubmitCopyToHost(received, memory, 4));
  ASSERT_OK(device_->Finish());
  EXPECT_EQ(memcmp(received, "grad", 4), 0);
  device_->Free(memory);
  device_->host()->Free(sent);
  device_->host()->Free(received);
}

TEST_F(CudaDeviceTest, BlocksAreDistinctAndAligned) {
  void* const none = Allocate(0);
  void* const one = Allocate(1);
  ASSERT_NE(none, nullptr);
  EXPECT_NE(none, one);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(none) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(one) % 64, 0u);
  ASSERT_OK(device_->CopyFromHost(none, nullptr, 0));
  device_->Free(none);
  device_->Free(one);
}

TEST_F(CudaDeviceTest, CountsBytesInUse) {
  void* const first = Allocate(1000);
  void* const second = Allocate(500);
  EXPECT_EQ(BytesInUse(), 1500u);
  device_->Free(first);
  EXPECT_EQ(BytesInUse(), 500u);
  device_->Free(second);
  EXPECT_EQ(BytesInUse(), 0u);
}

TEST_F(CudaDeviceTest, UsesFreedMemoryAgainWithoutAWait) {
  for (int step = 0; step < 10; ++step) {
    void* const memory = Allocate(48 * kMiB);
    ASSERT_OK(Fill(memory, step, 1));
    device_->Free(memory);
  }
}

TEST_F(CudaDeviceTest, NamesWhatIsWantedAndWhatIsThereWhenMemoryEnds) {
  DeviceUsage usage;
  ASSERT_OK(device_->Usage(&usage));
  void* const held = Allocate(4096);
  void* memory = nullptr;
  const uint64_t wanted = usage.bytes_total + 1;
  const Error error = device_->Allocate(wanted, &memory);
  EXPECT_EQ(CodeOf(error), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      error.message,
      AllOf(HasSubstr("cuda:0: no memory for " + std::to_string(wanted) + " bytes; " +
                      std::to_string(device_->bytes_in_use()) + " are in use"),
            HasSubstr("of the device's " + std::to_string(usage.bytes_total) + " are free")));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  device_->Free(held);
}

TEST_F(CudaDeviceTest, UsageCountsThisProcess) {
  DeviceUsage before, after;
  ASSERT_OK(device_->Usage(&before));
  EXPECT_GT(before.bytes_total, 0u);
  void* const memory = Allocate(32 * kMiB);
  ASSERT_OK(device_->Usage(&after));
  EXPECT_EQ(after.bytes_total, before.bytes_total);
  EXPECT_GE(after.bytes_used, 32 * kMiB);
  EXPECT_LE(after.bytes_used, after.bytes_total);
  EXPECT_LE(after.busy_fraction, 1);
  device_->Free(memory);
}

TEST_F(CudaDeviceTest, EachThreadHasAStreamOfItsOwn) {
  const cudaStream_t ours = StreamHere();
  EXPECT_EQ(StreamHere(), ours);
  EXPECT_NE(ours, nullptr);
  cudaStream_t theirs = nullptr;
  std::thread([&] { theirs = StreamHere(); }).join();
  EXPECT_NE(theirs, ours);
  cudaStream_t next = nullptr;
  std::thread([&] { next = StreamHere(); }).join();
  EXPECT_EQ(next, theirs) << "a stream that ended with its thread";
}

TEST_F(CudaDeviceTest, MemoryGoesFromThreadToThread) {
  void* const memory = Allocate(3);
  ASSERT_OK(Fill(memory, 'x', 3));
  ASSERT_OK(device_->Finish());
  std::thread([&] {
    EXPECT_EQ(Read(memory, 3), "xxx");
    device_->Free(memory);
  }).join();
  EXPECT_EQ(BytesInUse(), 0u);
}

TEST_F(CudaDeviceTest, ThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const char letter = static_cast<char>('a' + t);
      for (size_t bytes = 1; bytes < 20000; bytes += 97) {
        void* const memory = Allocate(bytes);
        ASSERT_OK(Fill(memory, letter, bytes));
        ASSERT_EQ(Read(memory, bytes), std::string(bytes, letter));
        device_->Free(memory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(BytesInUse(), 0u);
}

// Destructors of thread_locals run last of all in a thread.
TEST_F(CudaDeviceTest, AThreadFreesMemoryToItsVeryEnd) {
  struct Owner {
    Device* device = nullptr;
    void* memory = nullptr;
    ~Owner() { device->Free(memory); }
  };
  std::thread([&] {
    thread_local Owner owner;
    owner.device = device_;
    owner.memory = Allocate(100);
  }).join();
  EXPECT_EQ(BytesInUse(), 0u);
}

TEST_F(CudaDeviceTest, HostMemoryIsPageLockedAndKept) {
  Device* const host = device_->host();
  EXPECT_STREQ(host->name(), "cuda:0 host");
  EXPECT_TRUE(host->is_host());
  EXPECT_EQ(host->host(), host);
  void* memory = nullptr;
  ASSERT_OK(host->Allocate(1000, &memory));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_GE(HostBytesInUse(), 1000u);
  std::thread([&] { host->Free(memory); }).join();
  EXPECT_EQ(HostBytesInUse(), 0u);
  void* again = nullptr;
  ASSERT_OK(host->Allocate(1000, &again));
  EXPECT_EQ(again, memory);
  host->Free(again);
}

TEST_F(CudaDeviceTest, AfterTrimThereIsMemoryAsBefore) {
  Device* const host = device_->host();
  void* of_host = nullptr;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(host->Allocate(1000, &of_host));
    void* const memory = Allocate(1000);
    ASSERT_OK(device_->CopyFromHost(memory, of_host, 1000));
    device_->Free(memory);
    host->Free(of_host);
    device_->Trim();
  }
  EXPECT_EQ(HostBytesInUse(), 0u);
}

class RecorderTest : public CudaDeviceTest {
 protected:
  // Copies within the device, on the thread's stream.
  Error Copy(void* to, const void* from, size_t bytes) {
    return CudaErrorOf(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, StreamHere()));
  }
};

TEST_F(RecorderTest, RepeatsOnTheSameMemoryWhatItDidNotRun) {
  void* const x = Allocate(3);
  ASSERT_OK(device_->CopyFromHost(x, "one", 3));
  const auto recorder = NewRecorder();
  ASSERT_OK(recorder->Start());
  void* const y = Allocate(3);
  ASSERT_OK(Copy(y, x, 3));
  int recording = -1;
  ASSERT_OK(recorder->Stop(&recording));
  EXPECT_EQ(recording, 0);

  ASSERT_OK(device_->CopyFromHost(y, "...", 3));
  EXPECT_EQ(Read(y, 3), "...");
  ASSERT_OK(recorder->Replay(recording));
  EXPECT_EQ(Read(y, 3), "one");
  ASSERT_OK(device_->CopyFromHost(x, "two", 3));
  ASSERT_OK(recorder->Replay(recording));
  EXPECT_EQ(Read(y, 3), "two");
  device_->Free(y);
  device_->Free(x);
}

TEST_F(RecorderTest, NumbersRecordings) {
  void* const memory = Allocate(1);
  const auto recorder = NewRecorder();
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(recorder->Start());
    ASSERT_OK(Fill(memory, 'a' + i, 1));
    int recording = -1;
    ASSERT_OK(recorder->Stop(&recording));
    EXPECT_EQ(recording, i);
  }
  ASSERT_OK(recorder->Replay(1));
  EXPECT_EQ(Read(memory, 1), "b");
  EXPECT_EQ(CodeOf(recorder->Replay(3)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(recorder->Replay(-1)), absl::StatusCode::kInvalidArgument);
  device_->Free(memory);
}

TEST_F(RecorderTest, RefusesToWaitAndGoesOn) {
  void* const memory = Allocate(1);
  const auto recorder = NewRecorder();
  ASSERT_OK(recorder->Start());
  ASSERT_OK(Fill(memory, 'r', 1));
  char byte = 0;
  for (const Error& error :
       {device_->Finish(), device_->CopyToHost(&byte, memory, 1),
        device_->CopyFromHost(memory, &byte, 1), recorder->Replay(0), recorder->Start()}) {
    EXPECT_FALSE(error.ok());
  }
  EXPECT_EQ(CodeOf(device_->Finish()), kRefused);
  EXPECT_STREQ(device_->Finish().message, "cuda:0: no wait while recording");
  int recording = -1;
  ASSERT_OK(recorder->Stop(&recording));
  ASSERT_OK(recorder->Replay(recording));
  EXPECT_EQ(Read(memory, 1), "r");
  device_->Free(memory);
}

TEST_F(RecorderTest, OtherThreadsGoOnMeanwhile) {
  const auto recorder = NewRecorder();
  ASSERT_OK(recorder->Start());
  std::thread([&] {
    void* const memory = Allocate(2);
    ASSERT_OK(Fill(memory, 'o', 2));
    ASSERT_OK(device_->Finish());
    EXPECT_EQ(Read(memory, 2), "oo");
    device_->Free(memory);
  }).join();
  int recording = -1;
  ASSERT_OK(recorder->Stop(&recording));
}

TEST_F(RecorderTest, MemoryIsUsedAgainByLaterRecordingsOnly) {
  const auto recorder = NewRecorder();
  int recording = -1;
  ASSERT_OK(recorder->Start());
  void* const kept = Allocate(1000);
  void* const passing = Allocate(1000);
  device_->Free(passing);
  void* const next = Allocate(1000);
  EXPECT_EQ(next, passing) << "within a recording";
  ASSERT_OK(recorder->Stop(&recording));

  device_->Free(next);
  void* const outside = Allocate(1000);
  EXPECT_NE(outside, passing);

  ASSERT_OK(recorder->Start());
  void* const later = Allocate(1000);
  EXPECT_EQ(later, passing) << "in the next recording";
  EXPECT_NE(later, kept);
  ASSERT_OK(recorder->Stop(&recording));
  for (void* const memory : {kept, later, outside}) device_->Free(memory);
}

TEST_F(RecorderTest, RecordersShareNoMemory) {
  const auto first = NewRecorder();
  const auto second = NewRecorder();
  int recording = -1;
  std::vector<void*> blocks;
  for (Recorder* const recorder : {first.get(), second.get(), first.get(), second.get()}) {
    ASSERT_OK(recorder->Start());
    blocks.push_back(Allocate(512));
    device_->Free(blocks.back());
    ASSERT_OK(recorder->Stop(&recording));
  }
  EXPECT_EQ(blocks[0], blocks[2]);
  EXPECT_EQ(blocks[1], blocks[3]);
  EXPECT_NE(blocks[0], blocks[1]);
}

TEST_F(RecorderTest, MemoryOutlivesTheRecorder) {
  auto recorder = NewRecorder();
  int recording = -1;
  ASSERT_OK(recorder->Start());
  void* const memory = Allocate(4);
  ASSERT_OK(Fill(memory, 'm', 4));
  ASSERT_OK(recorder->Stop(&recording));
  ASSERT_OK(recorder->Replay(recording));
  recorder.reset();
  EXPECT_EQ(Read(memory, 4), "mmmm");
  EXPECT_GT(BytesInUse(), 0u);
  std::thread([&] { device_->Free(memory); }).join();
  EXPECT_EQ(BytesInUse(), 0u);
}

TEST_F(RecorderTest, GrowsByMoreThanAChunk) {
  auto recorder = NewRecorder();
  int recording = -1;
  ASSERT_OK(recorder->Start());
  void* const small = Allocate(1);
  void* const large = Allocate(20 * kMiB);
  ASSERT_OK(Fill(large, 'g', 20 * kMiB));
  ASSERT_OK(recorder->Stop(&recording));
  ASSERT_OK(recorder->Replay(recording));
  EXPECT_EQ(Read(static_cast<char*>(large) + 20 * kMiB - 1, 1), "g");
  // Each microbatch in flight of each segment records in memory of its own.
  EXPECT_LE(BytesInUse(), 22 * kMiB);
  device_->Free(small);
  device_->Free(large);
  recorder.reset();
  EXPECT_EQ(BytesInUse(), 0u);
}

TEST_F(RecorderTest, TellsWhenMemoryEnds) {
  DeviceUsage usage;
  ASSERT_OK(device_->Usage(&usage));
  const auto recorder = NewRecorder();
  ASSERT_OK(recorder->Start());
  void* memory = nullptr;
  EXPECT_EQ(CodeOf(device_->Allocate(usage.bytes_total + 1, &memory)),
            absl::StatusCode::kResourceExhausted);
  recorder->Abandon();
}

TEST_F(RecorderTest, MemoryFromBeforeIsFreedAfterTheRecording) {
  void* const memory = Allocate(100);
  const auto recorder = NewRecorder();
  ASSERT_OK(recorder->Start());
  device_->Free(memory);
  EXPECT_EQ(BytesInUse(), 100u);
  int recording = -1;
  ASSERT_OK(recorder->Stop(&recording));
  EXPECT_EQ(BytesInUse(), 0u);
}

TEST_F(RecorderTest, NothingIsKeptOfWhatWasAbandoned) {
  void* const memory = Allocate(1);
  ASSERT_OK(device_->CopyFromHost(memory, "-", 1));
  const auto recorder = NewRecorder();
  ASSERT_OK(recorder->Start());
  ASSERT_OK(Fill(memory, 'a', 1));
  recorder->Abandon();
  recorder->Abandon();  // nothing to end
  EXPECT_EQ(CodeOf(recorder->Replay(0)), absl::StatusCode::kInvalidArgument);
  int recording = -1;
  EXPECT_EQ(CodeOf(recorder->Stop(&recording)), kRefused);
  EXPECT_EQ(Read(memory, 1), "-");

  ASSERT_OK(recorder->Start());
  ASSERT_OK(Fill(memory, 'b', 1));
  ASSERT_OK(recorder->Stop(&recording));
  EXPECT_EQ(recording, 0);
  ASSERT_OK(recorder->Replay(0));
  EXPECT_EQ(Read(memory, 1), "b");
  device_->Free(memory);
}

TEST_F(RecorderTest, DeletedWhileRecordingItAbandons) {
  auto recorder = NewRecorder();
  ASSERT_OK(recorder->Start());
  recorder.reset();
  ASSERT_OK(device_->Finish());
  EXPECT_EQ(BytesInUse(), 0u);
}

}  // namespace
}  // namespace thinwire
