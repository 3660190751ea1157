#include "stage_server/replicas/piece_coder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/stopwatch.h"
#include "config/piece_codec.h"

namespace thinwire {
namespace {

// Checks what a decoder at a cut leaves to others: that all rows came, exactly if they had to.
absl::Status CheckWhole(const Message& message, bool compress, const BoundarySpec& spec) {
  const Shape shape = spec.sample.WithBatch(spec.max_batch);
  if (message.shape != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", message.shape.ToString(), ", want ", shape.ToString()));
  }
  return CheckExactness(spec, compress, message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MessageEncoder>> PieceCoder::NewEncoder(const Piece& piece,
                                                                       const DirectionSpec& does) {
  const BoundarySpec spec = SpecOf(piece, does);
  auto encoder = MessageEncoder::New(spec, /*support=*/nullptr, LeftOnDevice::kExact);
  if (!encoder.ok()) {
    return Annotated(encoder.status(), absl::StrCat("replicas, piece ", spec.name, " of ",
                                                    spec.max_batch, " x ", spec.sample.elements()));
  }
  RETURN_IF_ERROR(NotePayload(spec));
  return encoder;
}

absl::StatusOr<std::unique_ptr<MessageDecoder>> PieceCoder::NewDecoder(const Piece& piece,
                                                                       const DirectionSpec& does) {
  const BoundarySpec spec = SpecOf(piece, does);
  RETURN_IF_ERROR(NotePayload(spec));
  return MessageDecoder::New(spec, /*support=*/nullptr);
}

BoundarySpec PieceCoder::SpecOf(const Piece& piece, const DirectionSpec& does) const {
  BoundarySpec spec;
  spec.name = piece.name;
  spec.direction = DIRECTION_GRADIENT;
  spec.sample = piece.shape.WithBatch(1);
  spec.max_batch = piece.shape[0];
  spec.codec_seed = options_.codec_seed;
  if (ActsOn(does.codec, piece, options_.tied)) {
    static_cast<DirectionSpec&>(spec) = does;
    spec.error_every = options_.error_every;
  }
  spec.device = options_.device;
  spec.kernels = options_.kernels;
  return spec;
}

absl::Status PieceCoder::NotePayload(const BoundarySpec& spec) {
  ASSIGN_OR_RETURN(const uint64_t bytes, MaxPayloadBytes(spec));
  max_payload_bytes_ = std::max(max_payload_bytes_, bytes);
  return absl::OkStatus();
}

// All replicas together are a batch, in which each has the piece's rows as a microbatch.
std::shared_ptr<const EpochRows> PieceCoder::RowsOf(const Piece& piece, const EpochSpec& epoch,
                                                    int replicas) {
  EpochSpec of = epoch;
  of.shuffle = {ShuffleKind::kSamples, epoch.shuffle.seed, piece.shape[0] * replicas};
  of.microbatches = replicas;
  of.samples = of.shuffle.batch_size * NumBatches(epoch.samples, epoch.shuffle.batch_size);
  return std::make_shared<const EpochRows>(of, /*needs_ids=*/false);
}

absl::StatusOr<PieceCoder::Coded> PieceCoder::Encode(const MessageEncoder::Outgoing& outgoing,
                                                     MessageEncoder* encoder) {
  Coded coded;
  const Stopwatch encoding;
  ASSIGN_OR_RETURN(coded.encoded, encoder->Encode(outgoing));
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  const Stopwatch::Reading took = encoding.Read();
  if (encoder->IsMeasured(outgoing)) {
    ASSIGN_OR_RETURN(coded.error, encoder->Measure(outgoing, coded.encoded));
  }
  counts_->Of(outgoing.key.phase).AddEncoding(took, coded.encoded.level);
  return coded;
}

absl::StatusOr<Tensor> PieceCoder::Received(const MessageEncoder::Outgoing& outgoing,
                                            const MessageEncoder::Encoded& encoded) {
  const Stopwatch decoding;
  ASSIGN_OR_RETURN(Tensor received, DecodeOwn(outgoing, encoded));
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  counts_->Of(outgoing.key.phase).AddDecoding(decoding.Read());
  return received;
}

absl::StatusOr<Tensor> PieceCoder::DecodeOwn(const MessageEncoder::Outgoing& outgoing,
                                             const MessageEncoder::Encoded& encoded) {
  const FeedbackSender::Encoded& made = encoded.feedback;
  if (!made.received.empty()) return made.received;
  if (made.exact) return outgoing.x;
  ASSIGN_OR_RETURN(Tensor decoded,
                   decoded_.Get(options_.device, outgoing.x.dtype(), outgoing.x.shape()));
  RETURN_IF_ERROR(encoded.codec->Decode(encoded.message.payload.bytes, encoded.context, &decoded));
  return decoded;
}

absl::StatusOr<Tensor> PieceCoder::Decode(const Message& message, bool compress,
                                          const EpochRows* rows, MessageDecoder* decoder) {
  const Stopwatch decoding;
  RETURN_IF_ERROR(CheckWhole(message, compress, decoder->spec()));
  RETURN_IF_ERROR(decoder->Check(message));
  ASSIGN_OR_RETURN(Tensor decoded, decoder->Decode(message, rows));
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  ASSIGN_OR_RETURN(const bool is_finite, IsFinite(decoded, options_.kernels));
  if (!is_finite) return absl::OutOfRangeError("a number that is not finite");
  counts_->Of(message.key.phase).AddDecoding(decoding.Read());
  return decoded;
}

}  // namespace thinwire
