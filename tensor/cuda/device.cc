#include "tensor/cuda/device.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "tensor/cuda/arena.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/kernel_code.h"
#include "tensor/cuda/memory_pool.h"
#include "tensor/cuda/nvml.h"
#include "tensor/cuda/pinned_memory.h"
#include "tensor/cuda/poll.h"
#include "tensor/cuda/recorder.h"
#include "tensor/cuda/streams.h"

namespace thinwire {
namespace {

constexpr size_t kFewBytes = 1 << 15;

class Gpu final : public CudaDevice {
 public:
  explicit Gpu(int index)
      : index_(index),
        name_("cuda:" + std::to_string(index)),
        streams_(index),
        host_(name_ + " host", &streams_),
        pool_(name_) {}

  Error Open() {
    cudaStream_t stream;
    RETURN_ERROR(Stream(&stream));
    CUDA_RETURN_IF_ERROR(
        cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, index_));
    RETURN_ERROR(pool_.Open(index_));
    return CheckRunsKernels(index_, stream);
  }

  const char* name() const override { return name_.c_str(); }
  bool is_host() const override { return false; }
  Device* host() override { return &host_; }
  int index() const override { return index_; }
  int multiprocessors() const override { return multiprocessors_; }
  size_t bytes_in_use() const override { return pool_.bytes_in_use(); }
  void CountAsInUse(size_t bytes) override { pool_.CountAsInUse(bytes); }
  void Trim() override {
    host_.Trim();
    if (streams_.MakeCurrent().ok()) pool_.Trim();
  }
  Error Stream(cudaStream_t* stream) override { return streams_.OfThread(stream); }

  Error Allocate(size_t bytes, void** memory) override;
  void Free(void* memory) override;

  Error SubmitCopy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) override {
    if (bytes == 0) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, from, bytes, kind, stream));
    return Error{};
  }
  Error CopyFromHost(void* device, const void* host, size_t bytes) override {
    RETURN_ERROR(CheckMayWait("copy from the host"));
    RETURN_ERROR(SubmitCopyFromHost(device, host, bytes));
    return Finish();
  }
  // A few bytes go through page-locked memory, since a copy to any other memory waits asleep inside
  // CUDA.
  Error CopyToHost(void* host, const void* device, size_t bytes) override {
    RETURN_ERROR(CheckMayWait("copy to the host"));
    void* locked = nullptr;
    if (bytes == 0 || bytes > kFewBytes || !host_.Allocate(bytes, &locked).ok()) {
      RETURN_ERROR(SubmitCopyToHost(host, device, bytes));
      return Finish();
    }
    Error error = SubmitCopyToHost(locked, device, bytes);
    if (error.ok()) error = Finish();
    if (error.ok()) std::memcpy(host, locked, bytes);
    host_.Free(locked);
    return error;
  }

  Error Finish() override {
    RETURN_ERROR(CheckMayWait("wait"));
    cudaStream_t stream;
    RETURN_ERROR(Stream(&stream));
    if (PollUntilDone([stream] { return cudaStreamQuery(stream); })) return Error{};
    CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream));
    return Error{};
  }

  Error NewRecorder(Recorder** recorder) override {
    std::unique_ptr<Arena> arena;
    RETURN_ERROR(Arena::New(&streams_, &pool_, &arena));
    *recorder = new CudaRecorder(this, std::move(arena));
    return Error{};
  }

  Error Usage(DeviceUsage* usage) override {
    RETURN_ERROR(streams_.MakeCurrent());
    size_t free = 0, total = 0;
    CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
    usage->bytes_total = total;
    usage->bytes_used = total - free;
    usage->busy_fraction = BusyFraction(index_);
    return Error{};
  }

 private:
  // CUDA would refuse the call, too, but it would also invalidate the recording.
  Error CheckMayWait(const char* what) const {
    if (CudaRecorder::OfThread() == nullptr) return Error{};
    return MakeError(absl::StatusCode::kFailedPrecondition, "%s: no %s while recording",
                     name_.c_str(), what);
  }

  // Returns null for memory of the pool.
  std::shared_ptr<Arena> ArenaOf(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = in_arenas_.find(memory);
    return found == in_arenas_.end() ? nullptr : found->second;
  }

  const int index_;
  const std::string name_;
  int multiprocessors_ = 0;
  Streams streams_;
  PinnedMemory host_;
  MemoryPool pool_;
  std::mutex mutex_;
  // Blocks in use that are not the pool's.
  std::unordered_map<void*, std::shared_ptr<Arena>> in_arenas_ ABSL_GUARDED_BY(mutex_);
};

Error Gpu::Allocate(size_t bytes, void** memory) {
  const CudaRecorder* const recorder = CudaRecorder::OfThread();
  if (recorder != nullptr && recorder->device() == this) {
    RETURN_ERROR(recorder->arena()->Allocate(bytes, memory));
    const std::lock_guard<std::mutex> lock(mutex_);
    in_arenas_[*memory] = recorder->arena();
    return Error{};
  }
  cudaStream_t stream;
  RETURN_ERROR(Stream(&stream));
  return pool_.Allocate(stream, bytes, memory);
}

void Gpu::Free(void* memory) {
  CudaRecorder* const recorder = CudaRecorder::OfThread();
  const std::shared_ptr<Arena> arena = ArenaOf(memory);
  if (recorder != nullptr && recorder->arena() != arena) {
    recorder->FreeLater(this, memory);
    return;
  }
  if (arena == nullptr) {
    cudaStream_t stream;
    if (Stream(&stream).ok()) pool_.Free(stream, memory);
    return;
  }
  // Within a recording the next user comes later in the same order. Otherwise it may be a replay on
  // any stream, so this waits.
  if (recorder == nullptr) (void)Finish();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_arenas_.erase(memory);
  }
  arena->Free(memory);
}

}  // namespace

Error NewCudaDevice(int index, CudaDevice** device) {
  int count = 0;
  CUDA_RETURN_IF_ERROR(cudaGetDeviceCount(&count));
  if (index < 0 || index >= count) {
    return MakeError(absl::StatusCode::kInvalidArgument, "cuda:%d: there %s %d CUDA device%s",
                     index, count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
  }
  // Makes threads that wait for long sleep. By default they spin, and the stages of one machine
  // have more waiting threads than it has cores. The mode is a property of the device's context,
  // which this call creates.
  CUDA_RETURN_IF_ERROR(
      cudaInitDevice(index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
  auto* const opened = new Gpu(index);  // kept even if it does not open: this thread refers to it
  RETURN_ERROR(opened->Open());
  *device = opened;
  return Error{};
}

}  // namespace thinwire
