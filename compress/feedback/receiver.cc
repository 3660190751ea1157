#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/new_codec.h"
#include "compress/feedback/feedback.h"
#include "compress/feedback/state_digest.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<FeedbackReceiver>> FeedbackReceiver::New(
    const FeedbackOptions& options) {
  RETURN_IF_ERROR(CheckFeedback(options.spec));
  std::unique_ptr<FeedbackReceiver> receiver(new FeedbackReceiver(options));
  ASSIGN_OR_RETURN(receiver->exact_, NewCodec(CodecSpec(), options.kernels));
  if (options.spec.kind == FeedbackKind::kEf21) {
    ASSIGN_OR_RETURN(receiver->state_, StateStore::New(options));
    receiver->rows_ = std::make_unique<StateRows>(receiver->state_.get(), options.kernels);
  }
  return receiver;
}

absl::StatusOr<Tensor> FeedbackReceiver::Decode(const Codec& codec, const Incoming& incoming) {
  const bool tracks = options_.spec.kind == FeedbackKind::kEf21 && !incoming.frozen;
  if (tracks) {
    RETURN_IF_ERROR(CheckFeedbackOf(options_.spec, codec.spec()));
    RETURN_IF_ERROR(CheckMessage(options_, incoming.shape, incoming.rows.size()));
    RETURN_IF_ERROR(rows_->Plan(incoming.rows, options_.spec.on_full));
  }
  RETURN_IF_ERROR(CheckFlags(incoming, tracks));
  if (!tracks) return DecodePlain(codec, incoming);
  ASSIGN_OR_RETURN(Tensor used, DecodeTracked(codec, incoming));
  RETURN_IF_ERROR(CheckDigest(incoming));
  return used;
}

absl::StatusOr<Tensor> FeedbackReceiver::DecodePlain(const Codec& codec, const Incoming& incoming) {
  const Codec& carrier = incoming.exact ? *exact_ : codec;
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(options_.device, options_.compute, incoming.shape));
  const bool split =
      options_.spec.kind == FeedbackKind::kSplit && !incoming.frozen && !IsLossless(carrier.spec());
  if (split) {
    RETURN_IF_ERROR(CheckFeedbackOf(options_.spec, codec.spec()));
    RETURN_IF_ERROR(split_.Decode(codec.spec(), incoming.payload, incoming.context, &x));
  } else {
    RETURN_IF_ERROR(DecodeNext(carrier, incoming, &x));
  }
  return x;
}

absl::Status FeedbackReceiver::DecodeNext(const Codec& codec, const Incoming& incoming, Tensor* x) {
  std::shared_ptr<const Carry> next = carry_;
  MessageContext context = incoming.context;
  context.carry = carry_.get();
  context.next_carry = incoming.frozen && !incoming.calibrates ? nullptr : &next;
  RETURN_IF_ERROR(codec.Decode(incoming.payload, context, x));
  carry_ = std::move(next);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FeedbackReceiver::DecodeTracked(const Codec& codec,
                                                       const Incoming& incoming) {
  const Codec& carrier = incoming.exact ? *exact_ : codec;
  ASSIGN_OR_RETURN(Tensor used,
                   Tensor::Allocate(options_.device, options_.compute, incoming.shape));
  if (IsLossless(carrier.spec())) {
    RETURN_IF_ERROR(carrier.Decode(incoming.payload, incoming.context, &used));
    RETURN_IF_ERROR(rows_->Set(used));
    return used;
  }
  ASSIGN_OR_RETURN(Tensor decoded,
                   decoded_memory_.Get(options_.device, DType::kF32, incoming.shape));
  RETURN_IF_ERROR(DecodeNext(carrier, incoming, &decoded));
  RETURN_IF_ERROR(rows_->Track(decoded, &used));
  return used;
}

// Checks that the sender's flags are what this end's rows and step imply.
absl::Status FeedbackReceiver::CheckFlags(const Incoming& incoming, bool tracks) const {
  const bool first_visit = tracks && IsFirstVisit(options_.spec, rows_->message());
  if (incoming.first_visit != first_visit) {
    return absl::FailedPreconditionError(absl::StrCat(
        "DESYNC: step ", incoming.step, ": first_visit is ", incoming.first_visit,
        " in the message, want ", first_visit,
        first_visit ? absl::StrCat(": new here are the rows ", rows_->message().NewKeys())
                    : absl::StrCat(": none of the rows ", ListOfKeys(incoming.rows), " is new")));
  }
  if (first_visit && !incoming.exact) {
    return absl::InvalidArgumentError("feedback: first_visit without exact, want both");
  }
  const bool digest = tracks && IsDigestDue(options_.spec, incoming.step);
  if (incoming.state_digest.has_value() == digest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("feedback: step ", incoming.step, digest ? " without" : " with",
                   " a state digest, want one every ", options_.spec.digest_every, " steps"));
}

absl::Status FeedbackReceiver::CheckDigest(const Incoming& incoming) {
  if (!incoming.state_digest.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t digest, rows_->Digest());
  if (digest == *incoming.state_digest) return absl::OkStatus();
  const auto row = DifferingRow(digest, *incoming.state_digest, incoming.rows.size());
  return absl::FailedPreconditionError(
      absl::StrCat("state differs at step ", incoming.step, ": digest ", absl::Hex(digest),
                   ", the sender's is ", absl::Hex(*incoming.state_digest),
                   row ? absl::StrCat(", in row ", incoming.rows[*row])
                       : absl::StrCat(", in several of the rows ", ListOfKeys(incoming.rows))));
}

}  // namespace thinwire
