// Places of ecsq's escapes: codes that have no byte of their own.
#pragma once

#include <cstdint>

#include "compress/cpu/ecsq_header.h"
#include "compress/cuda/large_bytes.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

// Finds escapes among codes in device memory.
class Escapes {
 public:
  explicit Escapes(CudaDevice* device) : device_(device), offsets_(device), places_(device) {}

  // Counts the escapes among n codes. Waits, also for what was submitted before.
  Error Count(const uint8_t* bytes, int64_t n) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    RETURN_ERROR(offsets_.Reserve(LargeOffsetsBytes(n)));
    auto* const offsets = offsets_.as<uint64_t>();
    RETURN_ERROR(SubmitLargeOffsets(stream, bytes, n, kEscape, offsets));
    uint64_t count = 0;
    RETURN_ERROR(device_->CopyToHost(&count, offsets + NumLargeTiles(n), sizeof(count)));
    count_ = static_cast<int64_t>(count);
    return Error{};
  }
  int64_t count() const { return count_; }

  // Finds the places of the escapes among the same codes.
  Error SubmitPlaces(const uint8_t* bytes, int64_t n) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    RETURN_ERROR(places_.Reserve(sizeof(int64_t) * count_));
    return SubmitLargeList(stream, bytes, n, kEscape, offsets_.as<const uint64_t>(),
                           /*values=*/nullptr, places_.as<int64_t>());
  }
  const int64_t* places() const { return places_.as<const int64_t>(); }

 private:
  CudaDevice* const device_;
  CudaScratch offsets_, places_;
  int64_t count_ = 0;
};

}  // namespace thinwire
