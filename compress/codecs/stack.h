// Codecs that NewCodec puts on one another: the kernels' or a plug-in's at the bottom, and around
// them what the specification asks for.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "compress/entropy/kernels.h"
#include "compress/support.h"

namespace thinwire {

// Built-in codecs: they hand on what a backend's kernels write and read.

// Returns the context as kernels take it. *support, at which the result may point, outlives it.
// InvalidArgument if `spec` needs a support and the message has none of `elements` elements.
absl::StatusOr<KernelContext> KernelContextOf(const CodecSpec& spec, const MessageContext& context,
                                              int64_t elements, SupportView* support);

// Returns the codec that passes its calls to `kernels`. `spec` is of any kind but kLowRank and
// kPlugin and has no lossless stage. It has no support either, except for topk with indices of its
// own, threshold and randomk.
std::unique_ptr<Codec> NewKernelCodec(const CodecSpec& spec, CodecKernels* kernels);

// Returns low_rank's codec, which leaves the factor Q of a message to the next one's encoder.
std::unique_ptr<Codec> NewLowRankCodec(const CodecSpec& spec, CodecKernels* kernels);

// Codec plugin: a codec from a user's own library, which LoadPlugin has opened.

// Returns the codec of a plug-in. FailedPrecondition if the library is not loaded in this process.
absl::StatusOr<std::unique_ptr<Codec>> NewPluginCodec(const CodecSpec& spec, CodecKernels* kernels);

// Rotation principal: codes a tensor in the principal axes of its channels. The axes are those of
// an earlier message, which both ends have kept, or travel with this message.

// Returns the codec that rotates tensors and passes them to `inner`, the codec of the same
// specification with Rotation::kNone, which leaves nothing to its next message.
std::unique_ptr<Codec> NewPrincipalCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                         CodecKernels* kernels);

// Outliers and first positions: some elements are sent apart from the others (division.h), which
// are what the codec gets.

// Returns the codec of `spec`, which divides tensors. Its channels are those of the first message
// that leaves something to the next; both ends keep them. A message before that has channels of its
// own. With a rate the whole message takes that many bits.
absl::StatusOr<std::unique_ptr<Codec>> NewDividedCodec(const CodecSpec& spec,
                                                       CodecKernels* kernels);

// Codec ecsq with a rate: a message takes a given number of bits per element, whatever step that
// needs.

// Returns the codec of `spec`, which has a rate. A message meets the rate within kRateTolerance, or
// comes as near as the steps that are tried (rates.h). The step is found by encoding the message
// itself, two or three times as a rule.
absl::StatusOr<std::unique_ptr<Codec>> NewRatedCodec(const CodecSpec& spec, CodecKernels* kernels);

// Codecs of gradients that use what both ends know of the received activation: where it was zero,
// the gradient is not sent and arrives as zero. No index needs to say so.

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

// Lossless stage behind any codec: the codec's payload as a frame of zstd or of the entropy coder,
// or stored as it is if a frame would not be shorter.
//
// A message costs at most one byte more than without the stage. Each thread keeps the coders'
// memory and that of one payload, so that a message allocates nothing after the largest one.

// Returns the codec that adds the lossless stage to `inner`, which is the codec of the same
// specification with Lossless::kNone. For ecsq with rounding rate_distortion, `inner` has rounding
// dead_zone, and the codes are chosen anew here, for tensors in host memory only. `kernels` are of
// the device of the tensors, and `inner` is then a NewKernelCodec; null if the host makes and reads
// frames.
std::unique_ptr<Codec> NewLosslessCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                        EntropyKernels* kernels);

}  // namespace thinwire
