// Loops of the entropy coder (compress/entropy/rans.h) in device memory: a warp per string, a
// thread for each of its states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compress/entropy/rans.h"
#include "tensor/cuda/device.h"

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

// Reader of coded strings.
class RansReader {
 public:
  explicit RansReader(CudaDevice* device) : device_(device) {}

  // Decodes strings, see RansDecode. The states and words of string p are parts[p], one behind the
  // other in host memory, at least kStatesBytes each. Parts and the model's tables stay until the
  // stream is done. Sets *fault, in device memory, to 1 if one of the strings is refused; the bytes
  // are then unspecified. Refuses a part with half a word itself.
  Error Submit(const std::vector<absl::Span<const uint8_t>>& parts, const RansModel& model,
               const RansStrings& strings, uint8_t* bytes, uint32_t* fault);

  // Returns the error for a malformed frame, of which the host finds out what is wrong.
  static Error Refused() {
    return MakeError(absl::StatusCode::kInvalidArgument, "entropy: a malformed frame");
  }

 private:
  CudaDevice* const device_;
  CudaScratch entries_{device_}, frequencies_{device_}, offsets_{device_}, packed_{device_};
  std::vector<uint64_t> on_host_;
};

// Makes the histograms that tables come from: adds 1 to counts[sums[i]][bytes[i]] for n bytes, to
// counts[0] if `sums` is null. `counts` has kSums (or one) times kSymbols counts of 32 bits. All
// are in device memory.
Error SubmitByteCounts(CudaDevice* device, const uint8_t* bytes, const uint8_t* sums, int64_t n,
                       uint32_t* counts);

}  // namespace thinwire
