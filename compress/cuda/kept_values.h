// Kept values of a sparse codec on their way to the wire, in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cuda/payload.h"
#include "compress/cuda/values.h"
#include "compress/spec.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Values that an encoder keeps.
class KeptValues {
 public:
  explicit KeptValues(CudaDevice* device)
      : device_(device), values_(device), narrow_(device), cells_(device) {}

  // Reserves memory for at most `most` values.
  Error Reserve(const CodecSpec& spec, int64_t most);
  // Returns the memory of the values, in memory order, which the caller writes.
  float* data() const { return values_.as<float>(); }

  // Narrows data()[0, *count) to the type that travels; codes of uniform and means are made later.
  // *largest is the largest magnitude of the values. Both numbers are in device memory. Only
  // launches kernels.
  Error Submit(const uint64_t* count, const uint32_t* largest);

  // Writes the first ValueBytes(spec, count) bytes of `out`, perhaps only at the stream's end.
  // `random_key` is for stochastic rounding. InvalidArgument if the values' range overflows fp32
  // (uniform, which waits).
  Error SubmitCopy(int64_t count, uint64_t random_key, const PayloadTarget& out);

 private:
  Error SubmitMeans(int64_t count, const PayloadTarget& out);

  CudaDevice* const device_;
  CodecSpec spec_;
  int64_t most_ = 0;
  CudaScratch values_, narrow_, cells_;
};

// Returns the pre-scale exponent that precedes fp16 values whose largest magnitude has the bits
// `largest`; 0 for other types.
int16_t ValueExponentFor(const CodecSpec& spec, uint32_t largest);

// Values of a payload, which is not trusted, in device memory.
class PayloadValues {
 public:
  explicit PayloadValues(CudaDevice* device) : device_(device), memory_(device), codes_(device) {}

  // Reads `count` values. The first ValueBytes(spec, count) of `bytes` stay until the stream is
  // done. InvalidArgument if the exponent or what uniform or means say is impossible; uniform
  // waits, and means do for a payload in device memory.
  Error Submit(const PayloadSource& bytes, int64_t count, const CodecSpec& spec, int exponent);
  const WireValues& values() const { return result_; }

 private:
  CudaDevice* const device_;
  CudaScratch memory_, codes_;
  WireValues result_;
};

}  // namespace thinwire
