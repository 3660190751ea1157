// Codecs of gradients that use what both ends know of the received activation: where it was zero,
// the gradient is not sent and arrives as zero, and no index says so.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "compress/support.h"

namespace thinwire {

// The message's support. InvalidArgument unless there is one, of so many elements.
absl::StatusOr<SupportView> SupportOf(const CodecSpec& spec, const MessageContext& context,
                                      int64_t elements);

// topk with indices shared, and what `support: received_nonzero` means for codecs without positions
// of their own: the supported entries, as a flat tensor in memory order, through another codec.
// What is dropped is not looked at and may be NaN.
//
// `inner` is of the same parameters without support, or of CodecOfValues for indices shared: then
// it gets fp32.
std::unique_ptr<Codec> NewSupportedCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                         CodecKernels* kernels);

}  // namespace thinwire
