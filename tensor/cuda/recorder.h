// A Recorder (tensor/device.h) that captures the calling thread's stream as CUDA graphs.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "tensor/cuda/arena.h"
#include "tensor/cuda/device.h"

namespace thinwire {

class CudaRecorder final : public Recorder {
 public:
  CudaRecorder(CudaDevice* device, std::shared_ptr<Arena> arena)
      : device_(device), arena_(std::move(arena)) {}
  // Waits for what was replayed, so it must not run on a thread on which another recorder records.
  ~CudaRecorder() override;

  // Returns the recorder that records what this thread submits, or null.
  static CudaRecorder* OfThread();

  Error Start() override;
  Error Stop(int* recording) override;
  void Abandon() override;
  Error Replay(int recording) override;

  CudaDevice* device() const { return device_; }
  // Returns the arena of what the thread allocates while it records.
  const std::shared_ptr<Arena>& arena() const { return arena_; }
  // Frees `memory`, which is not the arena's, once the recording has ended; the stream cannot free
  // it before.
  void FreeLater(Device* device, void* memory) { to_free_.push_back({device, memory}); }

 private:
  struct Freed {
    Device* device;
    void* memory;
  };

  // Ends the capture. Without an error, *graph holds what was submitted.
  Error EndCapture(cudaGraph_t* graph);

  CudaDevice* const device_;
  const std::shared_ptr<Arena> arena_;
  std::vector<cudaGraphExec_t> recordings_;
  std::vector<Freed> to_free_;
};

}  // namespace thinwire
