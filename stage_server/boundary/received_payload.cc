#include "stage_server/boundary/received_payload.h"

#include <cstring>
#include <utility>

#include "base/status.h"
#include "compress/codec.h"
#include "compress/codecs/new_codec.h"
#include "stage_server/boundary/sequence_starts.h"

namespace thinwire {
namespace {

// Bytes of a tensor for one of its payload, below which the payload is not worth the time of
// decoding it again.
constexpr size_t kLeastSaving = 2;

absl::StatusOr<Payload> CopyOf(const BoundarySpec& boundary, const Payload& payload) {
  if (payload.device != nullptr) return OnHost(payload.bytes, boundary.device);
  ASSIGN_OR_RETURN(auto copy, Buffer::Allocate(boundary.device->host(), payload.bytes.size()));
  if (!payload.bytes.empty()) {
    std::memcpy(copy->data(), payload.bytes.data(), payload.bytes.size());
  }
  const auto* const data = static_cast<const uint8_t*>(copy->data());
  return Payload{std::move(copy), {data, payload.bytes.size()}};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ReceivedPayload>> ReceivedPayload::Of(
    const BoundarySpec& boundary, const Message& message) {
  const size_t tensor_bytes = message.shape.elements() * SizeOf(message.dtype);
  if (kLeastSaving * message.payload.bytes.size() > tensor_bytes) return nullptr;
  ASSIGN_OR_RETURN(Payload copy, CopyOf(boundary, message.payload));
  return std::shared_ptr<const ReceivedPayload>(
      new ReceivedPayload(boundary, message, std::move(copy)));
}

ReceivedPayload::ReceivedPayload(const BoundarySpec& boundary, const MessageHeader& header,
                                 Payload payload)
    : device_(boundary.device),
      header_(header),
      document_rows_(DocumentRowsOf(boundary, header.key, header.shape, header.document_starts)),
      payload_(std::move(payload)) {}

absl::StatusOr<Tensor> ReceivedPayload::Decode(CodecKernels* kernels) const {
  ASSIGN_OR_RETURN(const auto codec, NewCodec(header_.codec, kernels));
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(device_, header_.dtype, header_.shape));
  MessageContext context;
  context.document_rows = document_rows_;
  RETURN_IF_ERROR(codec->Decode(payload_.bytes, context, &x));
  return x;
}

}  // namespace thinwire
