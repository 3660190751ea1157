#include "stage_server/replicas/exchange_counts.h"

#include "wire/frame.h"

namespace thinwire {

void ExchangeCounts::AddMessage(const Message& message, const Counted& counted) {
  const uint64_t payload_bytes = message.payload.bytes.size();
  const auto copies = static_cast<uint64_t>(counted.receivers);
  const auto elements = static_cast<uint64_t>(counted.elements);
  BoundaryStatistics::Traffic sent;
  sent.messages = copies;
  sent.elements = copies * elements;
  sent.raw_bytes = copies * elements * sizeof(float);
  sent.payload_bytes = copies * payload_bytes;
  sent.wire_bytes = copies * WireBytes(message, payload_bytes, run_, generation_);
  Of(message.key.phase).AddTraining(message.key.step, sent, counted.level, counted.error);
}

}  // namespace thinwire
