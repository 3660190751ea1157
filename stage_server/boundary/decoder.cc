#include "stage_server/boundary/decoder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/support.h"
#include "stage_server/boundary/sequence_starts.h"
#include "wire/message_kind.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<MessageDecoder>> MessageDecoder::New(const BoundarySpec& spec,
                                                                    SupportMaps* support) {
  ASSIGN_OR_RETURN(auto feedback, FeedbackReceiver::New(FeedbackOptionsOf(spec)));
  std::unique_ptr<MessageDecoder> decoder(new MessageDecoder(spec, support, std::move(feedback)));
  RETURN_IF_ERROR(decoder->codecs_.Get(spec.codec).status());
  return decoder;
}

// A basis' gradient belongs to no sample and has no state.
absl::Status MessageDecoder::CheckBasis(const Message& message) const {
  if (spec_.basis.rank() == 0) {
    return absl::InvalidArgumentError("a basis' gradient, want none: nothing is learned here");
  }
  if (message.dtype != DType::kF32 || message.shape != spec_.basis || !message.codec.is_exact()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Name(message.dtype), " ", message.shape.ToString(), " with codec ",
        message.codec.ToString(), ", want fp32 ", spec_.basis.ToString(), " as it is"));
  }
  if (!message.first_visit && !message.state_digest) return absl::OkStatus();
  return absl::InvalidArgumentError("first_visit or state_digest, want neither");
}

absl::Status MessageDecoder::CheckDocuments(const Message& message) const {
  const std::vector<uint32_t>& starts = message.document_starts;
  if (starts.empty()) return absl::OkStatus();
  if (!spec_.packs_documents || MayHaveFewerPositions(message.key.phase)) {
    return absl::InvalidArgumentError(
        absl::StrCat(starts.size(), " document_starts, want none: nothing is packed here"));
  }
  const int64_t end = message.shape[0] * spec_.sample[1];
  int64_t before = -1;
  for (const uint32_t start : starts) {
    if (start <= before || start >= end) {
      return absl::InvalidArgumentError(absl::StrCat("document_starts has ", start, " behind ",
                                                     before, ", want them ascending and below ",
                                                     end));
    }
    before = start;
  }
  return absl::OkStatus();
}

absl::Status MessageDecoder::Check(const Message& message) const {
  if (!HasSamples(message.key.phase)) return CheckBasis(message);
  if (message.dtype != spec_.compute) {
    return absl::InvalidArgumentError(
        absl::StrCat("element type ", Name(message.dtype), ", want ", Name(spec_.compute)));
  }
  const Shape& shape = message.shape;
  const bool may_be_short = MayHaveFewerPositions(message.key.phase) && spec_.sample.rank() == 3;
  const bool is_short =
      may_be_short && shape.rank() == 3 && 0 < shape[1] && shape[1] < spec_.sample[1];
  const std::vector<int64_t>& slices = spec_.slice_positions;
  const bool is_slice = IsTrainingPass(message.key.phase) && !slices.empty();
  const int64_t positions = is_slice   ? slices[message.key.microbatch % slices.size()]
                            : is_short ? shape[1]
                                       : 0;
  const Shape sample = positions > 0 ? spec_.sample.With(1, positions) : spec_.sample;
  if (shape.rank() < 1 || shape[0] < 1 || shape[0] > spec_.max_batch ||
      shape != sample.WithBatch(shape[0])) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", shape.ToString(), ", want ",
                     (is_slice ? sample : spec_.sample).WithBatch(spec_.max_batch).ToString(),
                     " or fewer samples", may_be_short ? " and positions" : ""));
  }
  RETURN_IF_ERROR(CheckDocuments(message));
  if (!NeedsRows(message) && (message.first_visit || message.state_digest)) {
    return absl::InvalidArgumentError(
        absl::StrCat(message.first_visit ? "first_visit" : "state_digest",
                     " of a message without state at the receiver, want neither"));
  }
  if (message.codec.is_exact()) return absl::OkStatus();
  return CheckMet(message.codec, spec_.codec, spec_.level, message.key.epoch,
                  IsTrainingPass(message.key.phase));
}

bool MessageDecoder::NeedsRows(const Message& message) const {
  return IsTrainingPass(message.key.phase) && spec_.feedback.kind == FeedbackKind::kEf21;
}

// A carry that is there after a message was there before it, or comes of it.
bool MessageDecoder::DecodedAlone(const Message& message) const {
  return HasSamples(message.key.phase) && !message.codec.is_exact() && !NeedsRows(message) &&
         !spec_.codec.needs_support() && spec_.feedback.kind != FeedbackKind::kSplit &&
         feedback_->carry() == nullptr;
}

// Makes the payload a tensor where it lies, or copies it to the device of the tensors.
absl::StatusOr<Tensor> MessageDecoder::TakeExact(const Message& message) const {
  const DType type = message.dtype;
  const size_t want = message.shape.elements() * SizeOf(type);
  if (message.payload.bytes.size() != want) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload of ", message.payload.bytes.size(), " bytes, want ", want));
  }
  if (!spec_.device->is_host() && message.payload.device != spec_.device) {
    ASSIGN_OR_RETURN(const Tensor x, Tensor::Allocate(spec_.device, type, message.shape));
    const void* const bytes = message.payload.bytes.data();
    RETURN_IF_ERROR(ToStatus(spec_.device->CopyFromHost(x.data(), bytes, want)));
    return x;
  }
  auto* data = const_cast<uint8_t*>(message.payload.bytes.data());
  return Tensor(Buffer::Wrap(spec_.device, data, want, message.payload.owner), type, message.shape);
}

absl::StatusOr<Tensor> MessageDecoder::DecodeBytes(const Message& message, const EpochRows* rows) {
  if (!HasSamples(message.key.phase)) return TakeExact(message);
  SupportMap map;
  FeedbackReceiver::Incoming incoming;
  if (spec_.codec.needs_support()) {
    ASSIGN_OR_RETURN(map, support_->Take(message.key));
    incoming.context.support = &map;
  }
  const bool remembers = NeedsRows(message);
  incoming.exact = message.codec.is_exact();
  if (incoming.exact && !remembers) return TakeExact(message);
  std::vector<uint64_t> row_keys;
  if (remembers) {
    ASSIGN_OR_RETURN(row_keys,
                     rows->Of(spec_.feedback.key, message.key.step, message.key.microbatch));
    if (row_keys.size() != static_cast<size_t>(message.shape[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat(message.shape[0], " samples, want ", row_keys.size()));
    }
  }
  const std::vector<uint32_t> document_rows =
      DocumentRowsOf(spec_, message.key, message.shape, message.document_starts);
  incoming.context.document_rows = document_rows;
  Payload payload = message.payload;
  const bool is_on_device = payload.device != nullptr;
  incoming.context.payload_is_on_device = is_on_device && CodesOnDevice(spec_, message.codec);
  if (is_on_device && !incoming.context.payload_is_on_device) {
    ASSIGN_OR_RETURN(payload, OnHost(payload.bytes, spec_.device));
  }
  incoming.payload = payload.bytes;
  incoming.shape = message.shape;
  incoming.rows = row_keys;
  incoming.first_visit = message.first_visit;
  incoming.state_digest = message.state_digest;
  incoming.frozen = !IsTrainingPass(message.key.phase);
  incoming.calibrates = LeavesCarry(message.key.phase);
  incoming.step = message.key.step;
  // An exact message does not name the codec in force.
  ASSIGN_OR_RETURN(const Codec* codec, codecs_.Get(incoming.exact ? spec_.codec : message.codec));
  return feedback_->Decode(*codec, incoming);
}

absl::StatusOr<Tensor> MessageDecoder::Decode(const Message& message, const EpochRows* rows) {
  ASSIGN_OR_RETURN(Tensor tensor, DecodeBytes(message, rows));
  if (spec_.keeps_support && IsTrainingPass(message.key.phase)) {
    ASSIGN_OR_RETURN(SupportMap map, SupportMap::Of(tensor, spec_.kernels));
    support_->Put(message.key, std::move(map));
  }
  return tensor;
}

}  // namespace thinwire
