#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/codecs/new_codec.h"
#include "compress/feedback/feedback.h"

namespace thinwire {
namespace {

// State would keep NaN and infinity for ever.
absl::Status CheckFinite(const CodecSpec& codec, const Tensor& message, CodecKernels* kernels) {
  if (!CodecRowOf(codec.kind).carries_nonfinite) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool is_finite, IsFinite(message.view(), kernels));
  if (is_finite) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      Name(codec.kind), ": a message with NaN or infinity, want finite values under feedback"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FeedbackSender>> FeedbackSender::New(
    const FeedbackOptions& options) {
  RETURN_IF_ERROR(CheckFeedback(options.spec));
  std::unique_ptr<FeedbackSender> sender(new FeedbackSender(options));
  ASSIGN_OR_RETURN(sender->exact_, NewCodec(CodecSpec(), options.kernels));
  if (options.spec.kind != FeedbackKind::kNone) {
    ASSIGN_OR_RETURN(sender->state_, StateStore::New(options));
    sender->rows_ = std::make_unique<StateRows>(sender->state_.get(), options.kernels);
  }
  return sender;
}

absl::StatusOr<FeedbackSender::Encoded> FeedbackSender::Encode(const Codec& codec,
                                                               const Outgoing& outgoing,
                                                               absl::Span<uint8_t> payload) {
  last_message_ = Tensor();
  const FeedbackSpec& spec = options_.spec;
  if (outgoing.frozen || spec.kind == FeedbackKind::kNone) {
    return EncodePlain(codec, outgoing, payload);
  }
  RETURN_IF_ERROR(CheckFeedbackOf(spec, codec.spec()));
  RETURN_IF_ERROR(CheckMessage(options_, outgoing.x->shape(), outgoing.rows.size()));
  RETURN_IF_ERROR(rows_->Plan(outgoing.rows, spec.on_full));
  if (!outgoing.compress || IsFirstVisit(spec, rows_->message())) {
    return EncodeExact(*exact_, outgoing, payload);
  }
  if (IsLossless(codec.spec())) return EncodeExact(codec, outgoing, payload);
  switch (spec.kind) {
    case FeedbackKind::kEf21:
      return EncodeEf21(codec, outgoing, payload);
    case FeedbackKind::kSplit:
      return EncodeSplit(codec, outgoing, payload);
    default:
      return EncodeEf(codec, outgoing, payload);
  }
}

absl::StatusOr<Tensor> FeedbackSender::Compensate(const Tensor& x, std::vector<uint64_t> rows) {
  last_message_ = Tensor();
  if (options_.spec.kind == FeedbackKind::kNone) {
    ASSIGN_OR_RETURN(const Tensor copy,
                     message_memory_.Get(options_.device, DType::kF32, x.shape()));
    RowSums sums;
    sums.count = 1;
    sums.elements = x.elements();
    sums.x = {x.data(), nullptr, x.dtype()};
    sums.out = {copy.data(), nullptr, copy.dtype()};
    RETURN_IF_ERROR(ToStatus(options_.kernels->CombineRows(sums)));
    return copy;
  }
  compensated_ = std::move(rows);
  RETURN_IF_ERROR(CheckMessage(options_, x.shape(), compensated_.size()));
  RETURN_IF_ERROR(rows_->Plan(compensated_, options_.spec.on_full));
  return AddState(x, 1, DType::kF32);
}

absl::StatusOr<FeedbackSender::Encoded> FeedbackSender::EncodePlain(const Codec& codec,
                                                                    const Outgoing& outgoing,
                                                                    absl::Span<uint8_t> payload) {
  const Codec& carrier = outgoing.compress ? codec : *exact_;
  Encoded encoded;
  ASSIGN_OR_RETURN(encoded.bytes, EncodeNext(carrier, *outgoing.x, outgoing, payload));
  encoded.exact = carrier.spec().is_exact();
  encoded.message = *outgoing.x;
  if (!outgoing.want_received) return encoded;
  if (IsLossless(carrier.spec())) {
    encoded.decoded = *outgoing.x;
  } else {
    RETURN_IF_ERROR(DecodeOwn(carrier, payload, outgoing, options_.compute, &encoded));
  }
  encoded.received = encoded.decoded;
  return encoded;
}

absl::StatusOr<FeedbackSender::Encoded> FeedbackSender::EncodeExact(const Codec& carrier,
                                                                    const Outgoing& outgoing,
                                                                    absl::Span<uint8_t> payload) {
  const bool tracks = options_.spec.kind == FeedbackKind::kEf21;
  Encoded encoded;
  encoded.message = *outgoing.x;
  if (!tracks) {
    ASSIGN_OR_RETURN(encoded.message, AddState(*outgoing.x, 1, options_.compute));
  }
  ASSIGN_OR_RETURN(encoded.bytes, carrier.Encode(encoded.message, outgoing.context, payload));
  encoded.exact = carrier.spec().is_exact();
  encoded.decoded = encoded.received = encoded.message;
  if (!tracks) {
    RETURN_IF_ERROR(rows_->Clear());
    return encoded;
  }
  encoded.first_visit = IsFirstVisit(options_.spec, rows_->message());
  RETURN_IF_ERROR(rows_->Set(*outgoing.x));
  if (IsDigestDue(options_.spec, outgoing.step)) {
    ASSIGN_OR_RETURN(encoded.state_digest, rows_->Digest());
  }
  return encoded;
}

absl::StatusOr<FeedbackSender::Encoded> FeedbackSender::EncodeEf(const Codec& codec,
                                                                 const Outgoing& outgoing,
                                                                 absl::Span<uint8_t> payload) {
  Encoded encoded;
  ASSIGN_OR_RETURN(encoded.message, AddState(*outgoing.x, 1, DType::kF32));
  RETURN_IF_ERROR(CheckFinite(codec.spec(), encoded.message, options_.kernels));
  ASSIGN_OR_RETURN(encoded.bytes, EncodeNext(codec, encoded.message, outgoing, payload));
  // Decodes in the type that the receiver decodes to: rounding to it is a loss too and is paid
  // back.
  RETURN_IF_ERROR(DecodeOwn(codec, payload, outgoing, options_.compute, &encoded));
  encoded.received = encoded.decoded;
  RETURN_IF_ERROR(KeepErrors(encoded.message, encoded.decoded));
  return encoded;
}

absl::StatusOr<FeedbackSender::Encoded> FeedbackSender::EncodeSplit(const Codec& codec,
                                                                    const Outgoing& outgoing,
                                                                    absl::Span<uint8_t> payload) {
  const Tensor& x = *outgoing.x;
  Encoded encoded;
  ASSIGN_OR_RETURN(const Tensor e, message_memory_.Get(options_.device, DType::kF32, x.shape()));
  RETURN_IF_ERROR(rows_->Gather(e));
  ASSIGN_OR_RETURN(encoded.bytes, split_.Encode(codec.spec(), x, e, outgoing.context, payload));
  ASSIGN_OR_RETURN(encoded.decoded,
                   decoded_memory_.Get(options_.device, options_.compute, x.shape()));
  RETURN_IF_ERROR(split_.Decode(codec.spec(), payload.subspan(0, encoded.bytes), outgoing.context,
                                &encoded.decoded));
  RETURN_IF_ERROR(ToStatus(options_.kernels->Combine(1, x.view(), 1, e.view(), e.view())));
  encoded.message = e;
  encoded.received = encoded.decoded;
  RETURN_IF_ERROR(KeepErrors(encoded.message, encoded.decoded));
  return encoded;
}

absl::StatusOr<FeedbackSender::Encoded> FeedbackSender::EncodeEf21(const Codec& codec,
                                                                   const Outgoing& outgoing,
                                                                   absl::Span<uint8_t> payload) {
  const Tensor& x = *outgoing.x;
  Encoded encoded;
  ASSIGN_OR_RETURN(encoded.message, AddState(x, -1, DType::kF32));
  RETURN_IF_ERROR(CheckFinite(codec.spec(), encoded.message, options_.kernels));
  ASSIGN_OR_RETURN(encoded.bytes, EncodeNext(codec, encoded.message, outgoing, payload));
  RETURN_IF_ERROR(DecodeOwn(codec, payload, outgoing, DType::kF32, &encoded));
  if (outgoing.want_received) {
    ASSIGN_OR_RETURN(encoded.received,
                     received_memory_.Get(options_.device, options_.compute, x.shape()));
  }
  RETURN_IF_ERROR(
      rows_->Track(encoded.decoded, outgoing.want_received ? &encoded.received : nullptr));
  if (IsDigestDue(options_.spec, outgoing.step)) {
    ASSIGN_OR_RETURN(encoded.state_digest, rows_->Digest());
  }
  last_message_ = encoded.message;
  last_decoded_ = encoded.decoded;
  return encoded;
}

absl::StatusOr<size_t> FeedbackSender::EncodeNext(const Codec& codec, const Tensor& x,
                                                  const Outgoing& outgoing,
                                                  absl::Span<uint8_t> payload) {
  std::shared_ptr<const Carry> next = carry_;
  MessageContext context = outgoing.context;
  context.carry = carry_.get();
  const bool keeps = (!outgoing.frozen || outgoing.calibrates) && outgoing.compress;
  context.next_carry = keeps ? &next : nullptr;
  ASSIGN_OR_RETURN(const size_t bytes, codec.Encode(x, context, payload));
  carry_ = std::move(next);
  return bytes;
}

absl::Status FeedbackSender::DecodeOwn(const Codec& codec, absl::Span<const uint8_t> payload,
                                       const Outgoing& outgoing, DType dtype, Encoded* encoded) {
  ASSIGN_OR_RETURN(encoded->decoded,
                   decoded_memory_.Get(options_.device, dtype, outgoing.x->shape()));
  MessageContext context = outgoing.context;
  context.carry = carry_.get();
  return codec.Decode(payload.subspan(0, encoded->bytes), context, &encoded->decoded);
}

absl::StatusOr<Tensor> FeedbackSender::AddState(const Tensor& x, float sign, DType dtype) {
  ASSIGN_OR_RETURN(const Tensor sum, message_memory_.Get(options_.device, dtype, x.shape()));
  RETURN_IF_ERROR(rows_->AddTo(x, sign, sum));
  return sum;
}

absl::Status FeedbackSender::KeepErrors(const Tensor& message, const Tensor& sent) {
  if (options_.spec.kind == FeedbackKind::kNone) return absl::OkStatus();
  RETURN_IF_ERROR(rows_->KeepErrors(static_cast<float>(options_.spec.decay), message, sent));
  last_message_ = message;
  last_decoded_ = sent;
  return absl::OkStatus();
}

absl::StatusOr<double> FeedbackSender::RelativeResidual(const Tensor& x) const {
  if (last_message_.empty()) return 0;
  CodecKernels::Sums of_x, of_loss;
  RETURN_IF_ERROR(ToStatus(options_.kernels->Compare(x.view(), last_message_.view(), &of_x)));
  double residual = of_x.y;
  if (options_.spec.kind != FeedbackKind::kEf21) {
    RETURN_IF_ERROR(
        ToStatus(options_.kernels->Compare(last_message_.view(), last_decoded_.view(), &of_loss)));
    residual = options_.spec.decay * options_.spec.decay * of_loss.difference;
  }
  if (residual == 0) return 0;
  return std::sqrt(residual / of_x.x);
}

}  // namespace thinwire
