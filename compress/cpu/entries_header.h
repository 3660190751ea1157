// Head of payloads of topk, threshold and randomk, and what all backends refuse in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// Head of a payload of topk or threshold: its first kEntriesHeaderBytes bytes.
struct EntriesHeader {
  uint8_t coding;     // an IndexCoding
  uint8_t rice_bits;  // of each gap's remainder; 0 under other codings
  int16_t exponent;   // values were multiplied by 2^exponent; 0 unless they are fp16
  uint32_t count;     // number of entries
};
static_assert(sizeof(EntriesHeader) == kEntriesHeaderBytes, "as in docs/compression.md");

// Returns InvalidArgument if the tensor is too large for a sparse codec to place entries in it.
Error CheckElements(const CodecSpec& spec, int64_t total);

// Returns InvalidArgument unless a payload has a header's bytes.
Error CheckHeaderBytes(const CodecSpec& spec, size_t bytes, size_t want);

// Reads the header. InvalidArgument unless the payload holds a header and at least as many values
// as it says, and both are possible for the scopes. The exponent is not checked.
Error ReadEntriesHeader(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                        const Scopes& scopes, EntriesHeader* header);

// Returns InvalidArgument unless values can have this pre-scale exponent: 0 if they are not fp16.
Error CheckValueExponent(const CodecSpec& spec, int exponent);

// Returns the error of randomk with `unbiased` if a value times n / K is not finite.
Error OverflowOfProduct();

}  // namespace thinwire
