#include "wire/link_testing.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "base/steady_time.h"

namespace thinwire {
namespace {

LinkOptions SharedOptions() {
  LinkOptions options;
  options.name = "layer3";
  options.run = 77;
  options.generation = 5;
  options.secret = "what a link shows";
  options.cut = 3;
  options.max_payload_bytes = 32 << 20;
  options.queue_capacity = 4;
  return options;
}

}  // namespace

LinkOptions UpstreamOptions() {
  LinkOptions options = SharedOptions();
  options.peer = "stage 4";
  options.receives = DIRECTION_GRADIENT;
  return options;
}

LinkOptions DownstreamOptions() {
  LinkOptions options = SharedOptions();
  options.peer = "stage 3";
  options.receives = DIRECTION_ACTIVATION;
  return options;
}

Message TestMessage(Direction direction, size_t payload_bytes, uint32_t microbatch) {
  const auto bytes = std::make_shared<std::vector<uint8_t>>(payload_bytes);
  for (size_t i = 0; i < payload_bytes; i += 8) {
    const uint64_t word = RandomKey(microbatch, i);
    std::memcpy(bytes->data() + i, &word, std::min<size_t>(8, payload_bytes - i));
  }
  Message message;
  message.key = {PHASE_TRAIN, direction, 3, 2, 1234567, microbatch};
  message.dtype = DType::kBF16;
  message.shape = Shape{25, 32, 32, 64};
  message.codec.kind = CodecKind::kTopK;
  message.codec.scope = Scope::kSample;
  message.codec.ratio = 0.1;
  message.sample_digest = 0xFEDCBA9876543210u;
  message.first_visit = microbatch % 2 == 1;
  if (microbatch % 3 == 1) message.state_digest = 0x0123456789ABCDEFu + microbatch;
  message.payload = {bytes, *bytes};
  return message;
}

bool SameMessage(const Message& a, const Message& b) {
  return a.key == b.key && a.dtype == b.dtype && a.shape == b.shape && a.codec == b.codec &&
         a.sample_digest == b.sample_digest && a.first_visit == b.first_visit &&
         a.state_digest == b.state_digest && a.payload.bytes == b.payload.bytes;
}

SteadyTime TestDeadline() { return SteadyTime::Now() + absl::Seconds(30); }

}  // namespace thinwire
