// Lossless stage `entropy` for payloads in a device's memory. Pure-virtual and plain data, as
// kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"

namespace thinwire {

// CodesPlace (codes_place.h) as plain data; the distances outlive the call.
struct CodesView {
  size_t begin = 0, count = 0;
  const uint32_t* distances = nullptr;
  size_t num_distances = 0;
};

// Entropy coder of one backend, callable from any thread, several at once. `spec` is of any kind
// but kPlugin and kLowRank, as for CodecKernels::Encode and Decode. Both calls have finished when
// they return.
class EntropyKernels {
 public:
  virtual ~EntropyKernels() = default;

  // Writes the payload of CodecKernels::Encode, as a frame of EntropyFrame (frame.h) if
  // that is shorter, else as it is. *is_frame says which. Returns the errors of
  // CodecKernels::Encode.
  virtual Error EncodeFrame(const CodecSpec& spec, const TensorView& x,
                            const KernelContext& context, const CodesView& codes,
                            const PayloadBuffer& payload, bool* is_frame) = 0;

  // Decodes a frame that holds a payload of at most `most` bytes. InvalidArgument if the host's
  // coder or CodecKernels::Decode refuses it, whose words say why; x is then unspecified.
  virtual Error DecodeFrame(const PayloadView& frame, size_t most, const CodecSpec& spec,
                            const KernelContext& context, const TensorView& x) = 0;
};

}  // namespace thinwire
