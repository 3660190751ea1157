#include "tensor/cuda/recorder.h"

#include <utility>

#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

thread_local CudaRecorder* recording_on_thread = nullptr;

}  // namespace

CudaRecorder* CudaRecorder::OfThread() { return recording_on_thread; }

CudaRecorder::~CudaRecorder() {
  Abandon();
  // Errors of the work are reported to those who need its results.
  (void)device_->Finish();
  for (const cudaGraphExec_t recording : recordings_) (void)cudaGraphExecDestroy(recording);
}

Error CudaRecorder::Start() {
  if (recording_on_thread != nullptr) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "%s: this thread records already",
                     device_->name());
  }
  // Waits, so that the recording can use what earlier work frees.
  RETURN_ERROR(device_->Finish());
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  CUDA_RETURN_IF_ERROR(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  recording_on_thread = this;
  return Error{};
}

Error CudaRecorder::EndCapture(cudaGraph_t* graph) {
  cudaStream_t stream;
  Error error = device_->Stream(&stream);
  if (error.ok()) error = CudaError(cudaStreamEndCapture(stream, graph), "cudaStreamEndCapture");
  recording_on_thread = nullptr;
  for (const Freed& freed : std::exchange(to_free_, {})) freed.device->Free(freed.memory);
  return error;
}

Error CudaRecorder::Stop(int* recording) {
  if (recording_on_thread != this) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "%s: nothing is being recorded",
                     device_->name());
  }
  cudaGraph_t graph = nullptr;
  RETURN_ERROR(EndCapture(&graph));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&executable, graph, /*flags=*/0);
  (void)cudaGraphDestroy(graph);
  CUDA_RETURN_IF_ERROR(code);
  recordings_.push_back(executable);
  *recording = static_cast<int>(recordings_.size()) - 1;

  // Uploads the graph now, so that the first replay is as fast as the others.
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  CUDA_RETURN_IF_ERROR(cudaGraphUpload(executable, stream));
  return Error{};
}

void CudaRecorder::Abandon() {
  if (recording_on_thread != this) return;
  cudaGraph_t graph = nullptr;
  if (EndCapture(&graph).ok()) (void)cudaGraphDestroy(graph);
}

Error CudaRecorder::Replay(int recording) {
  if (recording < 0 || recording >= static_cast<int>(recordings_.size())) {
    return MakeError(absl::StatusCode::kInvalidArgument, "%s: recording %d of %zu", device_->name(),
                     recording, recordings_.size());
  }
  if (recording_on_thread != nullptr) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "%s: replay while recording",
                     device_->name());
  }
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  CUDA_RETURN_IF_ERROR(cudaGraphLaunch(recordings_[recording], stream));
  return Error{};
}

}  // namespace thinwire
