// Parts shared by ecsq's encoder and decoder.
#pragma once

#include <cstdint>

#include "compress/cpu/ecsq_header.h"
#include "compress/cuda/large_bytes.h"
#include "compress/cuda/philox.cuh"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

// Random numbers of the four elements from i on.
struct Numbers {
  uint32_t of[4] = {};
  __device__ Numbers(bool are_needed, uint64_t key, int64_t i) {
    if (are_needed) PhiloxNumbers(key, static_cast<uint64_t>(i) / 4, of);
  }
  // Returns number k, which is known only at run time. Selecting it by conditions keeps `of` in
  // registers; an index would need local memory.
  __device__ uint32_t At(int64_t k) const {
    const uint32_t low = (k & 1) != 0 ? of[1] : of[0], high = (k & 1) != 0 ? of[3] : of[2];
    return (k & 2) != 0 ? high : low;
  }
};

// Places of escapes, codes that have no byte of their own, in device memory.
class Escapes {
 public:
  explicit Escapes(CudaDevice* device) : device_(device), offsets_(device), places_(device) {}

  // Counts the escapes among n codes. Waits, also for what was submitted before.
  Error Count(const uint8_t* bytes, int64_t n) {
    RETURN_ERROR(offsets_.Reserve(LargeOffsetsBytes(n)));
    auto* const offsets = offsets_.as<uint64_t>();
    RETURN_ERROR(SubmitLargeOffsets(device_, bytes, n, kEscape, offsets));
    uint64_t count = 0;
    RETURN_ERROR(device_->CopyToHost(&count, offsets + NumLargeTiles(n), sizeof(count)));
    count_ = static_cast<int64_t>(count);
    return Error{};
  }
  int64_t count() const { return count_; }

  // Finds the places of the escapes among the same codes.
  Error SubmitPlaces(const uint8_t* bytes, int64_t n) {
    RETURN_ERROR(places_.Reserve(sizeof(int64_t) * count_));
    return SubmitLargeList(device_, bytes, n, kEscape, offsets_.as<const uint64_t>(),
                           /*values=*/nullptr, places_.as<int64_t>());
  }
  const int64_t* places() const { return places_.as<const int64_t>(); }

 private:
  CudaDevice* const device_;
  CudaScratch offsets_, places_;
  int64_t count_ = 0;
};

}  // namespace thinwire
