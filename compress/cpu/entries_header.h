// What a payload of topk, threshold or randomk says before its entries, and what all backends
// refuse in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// The first kEntriesHeaderBytes bytes of a payload of topk or threshold.
struct EntriesHeader {
  uint8_t coding;     // an IndexCoding
  uint8_t rice_bits;  // of each gap's remainder; 0 under other codings
  int16_t exponent;   // values were multiplied by 2^exponent; 0 unless they are fp16
  uint32_t count;     // of entries
};
static_assert(sizeof(EntriesHeader) == kEntriesHeaderBytes, "as in docs/compression.md");

// InvalidArgument if a sparse codec cannot place entries in so large a tensor.
Error CheckElements(const CodecSpec& spec, int64_t total);

// InvalidArgument unless a payload has a header's bytes.
Error CheckHeaderBytes(const CodecSpec& spec, size_t bytes, size_t want);

// InvalidArgument unless the payload holds a header, that many values at least, and both are
// possible for the scopes. The exponent is not looked at.
Error ReadEntriesHeader(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                        const Scopes& scopes, EntriesHeader* header);

// InvalidArgument unless values can have this pre-scale exponent: 0 if they are not fp16.
Error CheckValueExponent(const CodecSpec& spec, int exponent);

// The error of a decoder that met NaN or infinity.
Error NonFiniteValue(const CodecSpec& spec);

// randomk, unbiased: the error of an encoder whose products are not finite.
Error OverflowOfProduct();

}  // namespace thinwire
