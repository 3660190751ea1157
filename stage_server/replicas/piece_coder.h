// Codes the messages of pieces (models/pieces.h) in which replicas exchange their gradients: with
// which codec, encoded, and decoded again. Knows nothing of who sends what to whom.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "compress/feedback/message_tensors.h"
#include "models/pieces.h"
#include "stage_server/boundary/decoder.h"
#include "stage_server/boundary/encoder.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/replicas/exchange_counts.h"
#include "stage_server/replicas/exchange_options.h"

namespace thinwire {

// Makes the encoders and decoders of pieces, one of each for what has a state of its own, and works
// with them. Its messages are coded one after the other. Not thread-safe.
class PieceCoder {
 public:
  // Makes a coder that adds its seconds to `counts`. Both arguments outlive it.
  PieceCoder(const ExchangeOptions& options, ExchangeCounts* counts)
      : options_(options), counts_(counts) {}

  // Make an end of messages of `piece`, which are coded as `does` says. InvalidArgument names a
  // piece that the codec cannot carry.
  absl::StatusOr<std::unique_ptr<MessageEncoder>> NewEncoder(const Piece& piece,
                                                             const DirectionSpec& does);
  absl::StatusOr<std::unique_ptr<MessageDecoder>> NewDecoder(const Piece& piece,
                                                             const DirectionSpec& does);
  // Returns the longest payload of the ends made so far.
  uint64_t max_payload_bytes() const { return max_payload_bytes_; }

  // Returns the rows of the state of a piece's contributions in an epoch.
  static std::shared_ptr<const EpochRows> RowsOf(const Piece& piece, const EpochSpec& epoch,
                                                 int replicas);

  // A message, and its loss, where that is measured. It lives as long as MessageEncoder::Encoded
  // may.
  struct Coded {
    MessageEncoder::Encoded encoded;
    std::optional<MeasuredError> error;
  };
  // Encodes a message.
  absl::StatusOr<Coded> Encode(const MessageEncoder::Outgoing& outgoing, MessageEncoder* encoder);
  // Return what a message decodes to: one that was encoded here, and one that came, whose piece is
  // the decoder's. The tensor is valid until the next message. A message that came has to be whole,
  // exact where it must be, and OutOfRange tells that a number of it is not finite.
  absl::StatusOr<Tensor> Received(const MessageEncoder::Outgoing& outgoing,
                                  const MessageEncoder::Encoded& encoded);
  absl::StatusOr<Tensor> Decode(const Message& message, bool compress, const EpochRows* rows,
                                MessageDecoder* decoder);

 private:
  BoundarySpec SpecOf(const Piece& piece, const DirectionSpec& does) const;
  absl::Status NotePayload(const BoundarySpec& spec);
  absl::StatusOr<Tensor> DecodeOwn(const MessageEncoder::Outgoing& outgoing,
                                   const MessageEncoder::Encoded& encoded);

  const ExchangeOptions& options_;
  ExchangeCounts* const counts_;
  uint64_t max_payload_bytes_ = 0;
  ReusedTensor decoded_;
};

}  // namespace thinwire
