// A received tensor as the bytes that came, from which it can be made again with the same bits.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "stage_server/boundary/boundary.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// Immutable. The bytes are a copy in host memory, as those that came may lie where the link wants
// to put others.
class ReceivedPayload {
 public:
  // Copies the payload of a message that a codec coded, without anything of other messages.
  // `boundary` is that of the message; its device and kernels outlive the object. Returns null if
  // the payload has more than half the bytes of the tensor, and errors of the device.
  static absl::StatusOr<std::shared_ptr<const ReceivedPayload>> Of(const BoundarySpec& boundary,
                                                                   const Message& message);

  // Decodes with the given kernels of the boundary's device. The result is in memory of its own.
  absl::StatusOr<Tensor> Decode(CodecKernels* kernels) const;

  size_t bytes() const { return payload_.bytes.size(); }

 private:
  ReceivedPayload(const BoundarySpec& boundary, const MessageHeader& header, Payload payload);

  Device* const device_;
  const MessageHeader header_;
  const std::vector<uint32_t> document_rows_;  // as in MessageContext
  const Payload payload_;
};

}  // namespace thinwire
