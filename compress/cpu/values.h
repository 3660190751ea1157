// Kept values of a sparse codec on the wire, in memory order: as numbers of one type, quantised
// like a flat tensor by the codec uniform, or as cells with means (mean_values.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// Returns the pre-scale exponent of fp16 values, as under the codec fp16; 0 for other types.
int16_t ValueExponent(const float* values, size_t n, const CodecSpec& spec, int threads);

// Writes ValueBytes(spec, n) bytes. Requires finite values, which it may change. `random_key` is
// for stochastic rounding. InvalidArgument if their range overflows fp32 (uniform).
Error WriteValues(float* values, size_t n, const CodecSpec& spec, int exponent, uint64_t random_key,
                  int threads, uint8_t* out);

// Reader of values from bytes that are not trusted.
class ValueReader {
 public:
  // Starts reading at `from`, which holds ValueBytes(spec, n) bytes and outlives the reader. A
  // thread has one reader at a time. InvalidArgument if the exponent or what uniform or means say
  // is impossible.
  Error Open(const uint8_t* from, size_t n, const CodecSpec& spec, int exponent, int threads);
  // Skips the next `n`.
  void Skip(size_t n);
  // Reads the next `n`, of all that there are. InvalidArgument unless they are finite.
  Error Read(size_t n, float* values);

 private:
  const uint8_t* from_ = nullptr;   // the next value, for all but these
  const float* decoded_ = nullptr;  // the next value, for uniform and means
  CodecSpec spec_;
  float scale_ = 1;
};

}  // namespace thinwire
