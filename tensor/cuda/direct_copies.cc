#include "tensor/cuda/direct_copies.h"

#include <cstdint>
#include <deque>
#include <vector>

#include "tensor/cuda/crc32c.h"
#include "tensor/cuda/error.h"
#include "tensor/cuda/peer_memory.h"
#include "tensor/cuda/poll.h"
#include "tensor/cuda/relaxed_capture.h"

namespace thinwire {
namespace {

static_assert(CopyQueue::kMostBytes <= Crc32cParts::kMostBytes);

class CudaCopyQueue final : public CopyQueue {
 public:
  explicit CudaCopyQueue(CudaDevice* device) : device_(device) {}
  ~CudaCopyQueue() override {
    uint32_t ignored = 0;
    while (!submitted_.empty()) (void)Await(&ignored);
    for (const Copy& copy : idle_) {
      (void)cudaEventDestroy(copy.done);
      device_->host()->Free(copy.parts);
    }
  }

  Error SubmitToHost(void* host, const void* own, size_t bytes) override {
    return Submit(host, own, own, bytes, cudaMemcpyDeviceToHost);
  }
  Error SubmitFromHost(void* own, const void* host, size_t bytes) override {
    return Submit(own, host, own, bytes, cudaMemcpyHostToDevice);
  }
  Error SubmitToShared(void* shared, const void* own, size_t bytes) override {
    return Submit(shared, own, own, bytes, cudaMemcpyDeviceToDevice);
  }
  Error SubmitFromShared(void* own, const void* shared, size_t bytes) override {
    return Submit(own, shared, own, bytes, cudaMemcpyDeviceToDevice);
  }

  Error Await(uint32_t* crc32c) override {
    const Copy copy = submitted_.front();
    submitted_.pop_front();
    idle_.push_back(copy);
    if (!PollUntilDone([&copy] { return cudaEventQuery(copy.done); })) {
      CUDA_RETURN_IF_ERROR(cudaEventSynchronize(copy.done));
    }
    *crc32c = Crc32cOf(*copy.parts, copy.bytes);
    return Error{};
  }

 private:
  struct Copy {
    cudaEvent_t done = nullptr;
    Crc32cParts* parts = nullptr;
    size_t bytes = 0;
  };

  // Submits a copy; `own` is the one of `to` and `from` that no other process has.
  Error Submit(void* to, const void* from, const void* own, size_t bytes, cudaMemcpyKind kind) {
    if (idle_.empty()) RETURN_ERROR(AddIdle());
    Copy& copy = idle_.back();
    copy.bytes = bytes;
    const Error error = CopyAndSum(to, from, own, kind, copy);
    if (!error.ok()) {
      (void)device_->Finish();  // nobody will wait for what was submitted
      return error;
    }
    submitted_.push_back(copy);
    idle_.pop_back();
    return Error{};
  }

  // Copies, then computes the checksum of `own`: so a copy to the device is summed as it arrived
  // there.
  Error CopyAndSum(void* to, const void* from, const void* own, cudaMemcpyKind kind,
                   const Copy& copy) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, from, copy.bytes, kind, stream));
    RETURN_ERROR(SubmitCrc32c(device_, own, copy.bytes, copy.parts));
    CUDA_RETURN_IF_ERROR(cudaEventRecord(copy.done, stream));
    return Error{};
  }

  Error AddIdle() {
    void* parts = nullptr;
    RETURN_ERROR(device_->host()->Allocate(sizeof(Crc32cParts), &parts));
    Copy copy;
    copy.parts = static_cast<Crc32cParts*>(parts);
    const cudaError_t code =
        cudaEventCreateWithFlags(&copy.done, cudaEventBlockingSync | cudaEventDisableTiming);
    if (code != cudaSuccess) {
      device_->host()->Free(parts);
      return CudaError(code, "cudaEventCreateWithFlags");
    }
    idle_.push_back(copy);
    return Error{};
  }

  CudaDevice* const device_;
  std::vector<Copy> idle_;
  std::deque<Copy> submitted_;
};

class CudaDirectCopies final : public DirectCopies {
 public:
  explicit CudaDirectCopies(CudaDevice* device) : device_(device), peer_memory_(device) {}

  Error LockPages(void* memory, size_t bytes) override {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));  // also makes the device the thread's
    const RelaxedCapture relaxed;
    CUDA_RETURN_IF_ERROR(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
    return Error{};
  }

  void UnlockPages(void* memory) override {
    cudaStream_t stream;
    if (!device_->Stream(&stream).ok()) return;
    const RelaxedCapture relaxed;
    (void)cudaHostUnregister(memory);
  }

  Error NewQueue(CopyQueue** queue) override {
    *queue = new CudaCopyQueue(device_);
    return Error{};
  }

  PeerMemory* peer_memory() override { return &peer_memory_; }

 private:
  CudaDevice* const device_;
  CudaPeerMemory peer_memory_;
};

}  // namespace

std::unique_ptr<DirectCopies> NewCudaDirectCopies(CudaDevice* device) {
  return std::make_unique<CudaDirectCopies>(device);
}

}  // namespace thinwire
