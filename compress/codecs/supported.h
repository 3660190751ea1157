// Codecs of gradients that use what both ends know of the received activation: where it was zero,
// the gradient is not sent and arrives as zero. No index needs to say so.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "compress/support.h"

namespace thinwire {

// Returns the message's support. InvalidArgument unless there is one, of `elements` elements.
absl::StatusOr<SupportView> SupportOf(const CodecSpec& spec, const MessageContext& context,
                                      int64_t elements);

// Returns a codec that sends only the supported entries, as a flat tensor in memory order, through
// `inner`. It implements topk with indices shared, and `support: received_nonzero` for codecs that
// have no positions of their own. Entries without support are never read and may be NaN.
//
// `inner` has the same parameters without support. With indices shared it is the codec of
// CodecOfValues, and gets fp32.
std::unique_ptr<Codec> NewSupportedCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                         CodecKernels* kernels);

}  // namespace thinwire
