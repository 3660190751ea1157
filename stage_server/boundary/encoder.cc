#include "stage_server/boundary/encoder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/checks/distortion.h"
#include "compress/codecs/division.h"
#include "wire/link.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

uint64_t MessageRandomKey(const BoundarySpec& spec, const MessageKey& key) {
  const char* direction = spec.direction == DIRECTION_ACTIVATION ? "activation" : "gradient";
  const uint64_t stream =
      RandomKey(spec.codec_seed, absl::StrCat(spec.name, "/", direction, "/", key.phase));
  return RandomKey(stream, key.step, key.microbatch);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MessageEncoder>> MessageEncoder::New(const BoundarySpec& spec,
                                                                    SupportMaps* support,
                                                                    LeftOnDevice left) {
  ASSIGN_OR_RETURN(auto feedback, FeedbackSender::New(FeedbackOptionsOf(spec)));
  std::unique_ptr<MessageEncoder> encoder(
      new MessageEncoder(spec, support, left, std::move(feedback)));
  // Refuses a bad spec now, not at the first message.
  RETURN_IF_ERROR(encoder->codecs_.Get(spec.codec).status());
  return encoder;
}

MessageEncoder::MessageEncoder(const BoundarySpec& spec, SupportMaps* support, LeftOnDevice left,
                               std::unique_ptr<FeedbackSender> feedback)
    : spec_(spec),
      support_(support),
      left_(left),
      feedback_(std::move(feedback)),
      codecs_(spec.kernels),
      level_(spec.codec, spec.level) {}

// Returns the tensor's own bytes: its memory, or a copy where neither the host nor the link can
// read that.
absl::StatusOr<Payload> MessageEncoder::RawBytes(const Tensor& x) const {
  const bool stays = !x.device()->is_host() && left_ != LeftOnDevice::kNone;
  const absl::Span<const uint8_t> bytes(static_cast<const uint8_t*>(x.data()), x.bytes());
  if (!x.device()->is_host() && !stays) return OnHost(bytes, x.device());
  return Payload{x.buffer(), bytes, stays ? x.device() : nullptr};
}

// Returns whether the codec writes to the device. Of payloads that are surely short it does not:
// the receiver would decode them on the host.
bool MessageEncoder::StaysOnDevice(const Codec& codec, const Tensor& x) const {
  return left_ == LeftOnDevice::kAll && CodesOnDevice(spec_, codec.spec()) &&
         codec.MaxPayloadBytes(x.shape(), x.dtype()) >= kLeastCodedOnDevice;
}

bool MessageEncoder::IsMeasured(const Outgoing& outgoing) const {
  return spec_.error_every > 0 && IsTrainingPass(outgoing.key.phase) && outgoing.compress &&
         outgoing.key.step % spec_.error_every == 0;
}

// Fills in everything that does not depend on the payload: the message's own fields, the codec, and
// what that may use.
absl::StatusOr<MessageEncoder::Encoded> MessageEncoder::Prepare(const Outgoing& outgoing) {
  const MessageKey& key = outgoing.key;
  const bool training = IsTrainingPass(key.phase);
  Encoded encoded;
  encoded.message.key = key;
  encoded.message.dtype = outgoing.x.dtype();
  encoded.message.shape = outgoing.x.shape();
  encoded.message.sample_digest = outgoing.sample_digest;
  encoded.message.document_starts = outgoing.starts.documents;
  ASSIGN_OR_RETURN(encoded.codec,
                   codecs_.Get(training ? level_.Train(key.epoch, key.step) : level_.Evaluate()));
  encoded.context.random_key = MessageRandomKey(spec_, key);
  encoded.context.begins_sequences = BeginsSequences(spec_, key, outgoing.starts.first_position);
  encoded.document_rows = DocumentRowsOf(spec_, key, outgoing.x.shape(), outgoing.starts.documents);
  encoded.context.document_rows = encoded.document_rows;
  if (!spec_.codec.needs_support() || !HasSamples(key.phase)) return encoded;
  ASSIGN_OR_RETURN(SupportMap support, support_->Take(key));
  encoded.support = std::make_unique<SupportMap>(std::move(support));
  encoded.context.support = encoded.support.get();
  return encoded;
}

absl::StatusOr<FeedbackSender::Encoded> MessageEncoder::EncodeOrPass(
    const Codec& codec, FeedbackSender::Outgoing outgoing, absl::Span<uint8_t> payload) {
  auto encoded = feedback_->Encode(codec, outgoing, payload);
  const bool refused =
      absl::IsOutOfRange(encoded.status()) || absl::IsInvalidArgument(encoded.status());
  if (!refused || !outgoing.compress) return encoded;
  ASSIGN_OR_RETURN(const bool is_finite, IsFinite(*outgoing.x, spec_.kernels));
  if (is_finite) return encoded;
  // A plugin's codec may have answered InvalidArgument, as it has no other code for a refusal.
  if (spec_.on_nonfinite == OnNonfinite::kError) {
    return absl::OutOfRangeError(encoded.status().message());
  }
  outgoing.compress = false;
  return feedback_->Encode(codec, outgoing, payload);
}

absl::Status MessageEncoder::EncodePayload(const Outgoing& outgoing, Encoded* encoded) {
  const Tensor& x = outgoing.x;
  const bool training = IsTrainingPass(outgoing.key.phase);
  const bool remembers = training && spec_.feedback.kind != FeedbackKind::kNone;
  std::vector<uint64_t> rows;
  if (remembers) {
    ASSIGN_OR_RETURN(
        rows, outgoing.rows->Of(spec_.feedback.key, outgoing.key.step, outgoing.key.microbatch));
  }
  const bool compress = outgoing.compress && !spec_.codec.is_exact();
  if (!compress && !remembers) {
    encoded->feedback.exact = true;
    encoded->feedback.received = encoded->feedback.message = encoded->feedback.decoded = x;
    ASSIGN_OR_RETURN(encoded->message.payload, RawBytes(x));
    return absl::OkStatus();
  }
  const auto documents = static_cast<int64_t>(encoded->document_rows.size());
  const size_t capacity =
      FeedbackMaxPayloadBytes(spec_.feedback, *encoded->codec, x.shape(), x.dtype()) +
      MaxDocumentBytes(encoded->codec->spec(), x.shape(), documents);
  const bool stays = StaysOnDevice(*encoded->codec, x);
  encoded->context.payload_is_on_device = stays;
  FeedbackSender::Outgoing out;
  out.x = &x;
  out.rows = rows;
  out.compress = compress;
  out.frozen = !training;
  out.calibrates = LeavesCarry(outgoing.key.phase);
  out.step = outgoing.key.step;
  out.context = encoded->context;
  // Without feedback, Measure decodes the payload itself, so that encoding is not timed with it.
  out.want_received = outgoing.want_received ||
                      (training && (spec_.keeps_support || (remembers && IsMeasured(outgoing))));
  Device* const holder = stays ? spec_.device : spec_.device->host();
  ASSIGN_OR_RETURN(auto buffer, Buffer::Allocate(holder, capacity));
  auto* data = static_cast<uint8_t*>(buffer->data());
  ASSIGN_OR_RETURN(encoded->feedback,
                   EncodeOrPass(*encoded->codec, out, absl::MakeSpan(data, capacity)));
  encoded->message.payload = {
      std::move(buffer), {data, encoded->feedback.bytes}, stays ? spec_.device : nullptr};
  encoded->context.carry = feedback_->carry().get();  // the receiver has what it decodes by
  return absl::OkStatus();
}

absl::StatusOr<MessageEncoder::Encoded> MessageEncoder::Encode(const Outgoing& outgoing) {
  ASSIGN_OR_RETURN(Encoded encoded, Prepare(outgoing));
  RETURN_IF_ERROR(EncodePayload(outgoing, &encoded));
  encoded.message.codec = encoded.feedback.exact ? CodecSpec() : encoded.codec->spec();
  const bool has_level = spec_.level.kind != LevelKind::kFixed && !encoded.message.codec.is_exact();
  if (has_level) encoded.level = LevelOf(encoded.message.codec);
  encoded.message.first_visit = encoded.feedback.first_visit;
  encoded.message.state_digest = encoded.feedback.state_digest;
  if (spec_.keeps_support && IsTrainingPass(outgoing.key.phase)) {
    ASSIGN_OR_RETURN(SupportMap map, SupportMap::Of(encoded.feedback.received, spec_.kernels));
    support_->Put(outgoing.key, std::move(map));
  }
  return encoded;
}

absl::StatusOr<MeasuredError> MessageEncoder::Measure(const Outgoing& outgoing,
                                                      const Encoded& encoded) {
  const FeedbackSender::Encoded& made = encoded.feedback;
  Tensor received = made.received, decoded = made.decoded, coded = made.message;
  if (made.exact && received.empty()) received = decoded = coded = outgoing.x;
  if (received.empty()) {
    ASSIGN_OR_RETURN(decoded,
                     Tensor::Allocate(spec_.device, outgoing.x.dtype(), outgoing.x.shape()));
    RETURN_IF_ERROR(
        encoded.codec->Decode(encoded.message.payload.bytes, encoded.context, &decoded));
    received = decoded;
    coded = outgoing.x;
  }
  MeasuredError error;
  ASSIGN_OR_RETURN(error.received, MeasureDistortion(outgoing.x, received, spec_.kernels));
  if (made.exact) return error;
  CodecError& of_codec = error.codec.emplace();
  ASSIGN_OR_RETURN(of_codec.relative_residual, feedback_->RelativeResidual(outgoing.x));
  ASSIGN_OR_RETURN(const Distortion distortion, MeasureDistortion(coded, decoded, spec_.kernels));
  of_codec.relative_error = distortion.relative_error;
  level_.Observe(outgoing.key.step, of_codec.relative_error);
  return error;
}

}  // namespace thinwire
