#include "tensor/cuda/arena.h"

#include <algorithm>

#include "tensor/cuda/error.h"
#include "tensor/cuda/relaxed_capture.h"

namespace thinwire {
namespace {

// Size that lets the small tensors of a pass share few chunks. Each microbatch in flight of each
// segment has chunks of its own, so they should not be much larger than what they hold.
constexpr size_t kLeastChunkBytes = size_t{2} << 20;

}  // namespace

Error Arena::New(Streams* streams, MemoryPool* pool, std::unique_ptr<Arena>* arena) {
  cudaStream_t stream = nullptr;
  RETURN_ERROR(streams->Take(&stream));
  arena->reset(new Arena(streams, pool, stream));
  return Error{};
}

Arena::~Arena() {
  const RelaxedCapture relaxed;
  for (void* const chunk : chunks_) pool_->Free(stream_, chunk);
  streams_->GiveBack(stream_);
}

Error Arena::Allocate(size_t bytes, void** memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *memory = blocks_.Take(bytes);
  if (*memory != nullptr) return Error{};
  RETURN_ERROR(AddChunk(FreeBlocks::RoundUp(bytes)));
  *memory = blocks_.Take(bytes);
  return Error{};
}

// Adds a chunk of at least `bytes`; if memory is short, of exactly `bytes`.
Error Arena::AddChunk(size_t bytes) {
  const RelaxedCapture relaxed;
  void* chunk = nullptr;
  size_t chunk_bytes = std::max(bytes, kLeastChunkBytes);
  Error error = pool_->Allocate(stream_, chunk_bytes, &chunk);
  if (!error.ok() && chunk_bytes > bytes) {
    chunk_bytes = bytes;
    error = pool_->Allocate(stream_, chunk_bytes, &chunk);
  }
  RETURN_ERROR(error);
  chunks_.push_back(chunk);
  blocks_.AddChunk(chunk, chunk_bytes);
  // Waits for the allocation, as other streams may use the chunk from now on.
  CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  return Error{};
}

void Arena::Free(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_.Return(memory);
}

}  // namespace thinwire
