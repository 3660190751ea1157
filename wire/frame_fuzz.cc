// Feeds arbitrary bytes of a peer to parser, checker, queue and assembler, in the order of a real
// link.
//
// The first byte chooses how the rest is read. If bit 0 is clear, the rest is records of { size:
// u16, frame }, given in parts of 1 + (byte >> 1) bytes. If bit 0 is set, it is records of { size:
// u8, serialised FrameHeader, size: u16, payload }. These are sealed here with correct checksums,
// so that the code behind the checks is reached. If bit 1 is set, messages are received after each
// frame and not only at the end.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/steady_time.h"
#include "wire/fuzz_testing.h"
#include "wire/inbox.h"

namespace thinwire {
namespace {

constexpr uint64_t kMaxPayload = 1 << 20;

LinkOptions Options() {
  LinkOptions options;
  options.name = "layer1";
  options.peer = "stage 1";
  options.run = 77;
  options.generation = 5;
  options.cut = 1;
  options.receives = DIRECTION_ACTIVATION;
  options.max_payload_bytes = kMaxPayload;
  options.queue_capacity = 2;
  return options;
}

IncomingFrame InParts(std::string bytes, size_t part_bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  const ByteSpan all = BytesOf(*owner);
  IncomingFrame frame;
  for (size_t i = 0; i < all.size(); i += part_bytes) {
    frame.parts.push_back(all.subspan(i, part_bytes));
  }
  frame.owner = owner;
  return frame;
}

// Receives what has come; aborts if it is not what the checks promise.
void Drain(Inbox* inbox) {
  for (;;) {
    const absl::StatusOr<Message> message = inbox->Receive(SteadyTime(), "");
    if (!message.ok()) return;
    if (message->payload.bytes.size() > kMaxPayload || message->shape.rank() < 1 ||
        message->key.cut != 1 || message->key.direction != DIRECTION_ACTIVATION) {
      std::abort();
    }
  }
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  thinwire::FuzzInput input(data, size);
  const size_t mode = input.TakeNumber(1);
  thinwire::Inbox inbox(thinwire::Options());
  absl::Status status;
  while (status.ok() && !input.empty()) {
    std::string bytes;
    if (mode & 1) {
      const std::string header = input.Take(input.TakeNumber(1));
      bytes = thinwire::Sealed(header, input.Take(input.TakeNumber(2)));
    } else {
      bytes = input.Take(input.TakeNumber(2));
    }
    status = inbox.Push(thinwire::InParts(std::move(bytes), 1 + (mode >> 1)));
    if (mode & 2) thinwire::Drain(&inbox);
  }
  thinwire::Drain(&inbox);
  return 0;
}
