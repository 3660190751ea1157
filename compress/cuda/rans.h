// Loops of the entropy coder (compress/entropy/rans.h) in device memory: a warp per string, a
// thread for each of its states.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compress/entropy/rans.h"
#include "tensor/cuda/device.h"
#include "tensor/error.h"

namespace thinwire {

// Strings that lie one after the other in `bytes` bytes. These are `rows` rows, of which the last
// may be incomplete. String p consists of the rows from p rows / count (rounded down) on.
struct RansStrings {
  int64_t bytes = 0, rows = 0, count = 1;

  __host__ __device__ int64_t begin(int64_t p) const {
    const int64_t at = p * rows / count * static_cast<int64_t>(kStates);
    return at < bytes ? at : bytes;
  }
  int64_t longest() const { return (rows / count + 1) * static_cast<int64_t>(kStates); }
};

// Writer that codes strings and packs the results, states and words, one string after the other.
class RansWriter {
 public:
  explicit RansWriter(CudaDevice* device) : device_(device) {}

  // Codes strings, see RansEncode. sums[i] chooses among kSums tables for byte i; if `sums` is null
  // there is one table. `tables` are in host memory. Waits for the offsets;
  // what comes behind in the stream may read packed(). Results stay until the next call.
  Error Encode(const uint8_t* bytes, const RansStrings& strings, const uint8_t* sums,
               const Frequencies* tables);

  // Returns the offsets of the strings in packed(), and behind them its length: in host memory.
  const std::vector<uint64_t>& offsets() const { return on_host_; }
  // Returns the coded strings, in device memory.
  const uint8_t* packed() const { return packed_.as<const uint8_t>(); }

 private:
  CudaDevice* const device_;
  CudaScratch entries_{device_}, room_{device_}, offsets_{device_}, packed_{device_};
  std::vector<uint64_t> on_host_;
};

// Reader of coded strings. The states and words of string p lie in `packed`, from offsets[p] to
// before offsets[p + 1]: at least kStatesBytes, an even number. Both arrays and the model's tables
// are in host memory and stay until the stream is done.
class RansReader {
 public:
  explicit RansReader(CudaDevice* device) : device_(device) {}

  // Decodes strings, see RansDecode. Sets *fault, in device memory, to 1 if one of the strings is
  // refused; the bytes are then unspecified.
  Error Submit(const uint8_t* packed, const std::vector<uint64_t>& offsets, const RansModel& model,
               const RansStrings& strings, uint8_t* bytes, uint32_t* fault);

 private:
  CudaDevice* const device_;
  CudaScratch entries_{device_}, frequencies_{device_}, offsets_{device_}, packed_{device_};
};

}  // namespace thinwire
