// One encoded tensor on its way across a boundary: its key, its description and its payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/steady_time.h"
#include "compress/spec.h"
#include "proto/boundary.pb.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace thinwire {

// Identifies a message; sender and receiver must agree on it.
struct MessageKey {
  Phase phase = PHASE_UNSPECIFIED;
  Direction direction = DIRECTION_UNSPECIFIED;
  uint32_t cut = 0;
  uint32_t epoch = 0;  // counted from 1
  uint64_t step = 0;   // counted from 1
  uint32_t microbatch = 0;

  friend bool operator==(const MessageKey& a, const MessageKey& b) {
    return a.phase == b.phase && a.direction == b.direction && a.cut == b.cut &&
           a.epoch == b.epoch && a.step == b.step && a.microbatch == b.microbatch;
  }
  // Returns "training activation of cut 1, epoch 2, step 17, microbatch 3" or "sum of squares of
  // gradients before cut 1, epoch 2, step 17".
  std::string ToString() const;
};

class Device;

// Bytes with an owner. They are encoded in place, handed to gRPC without a copy, and freed on
// gRPC's threads.
struct Payload {
  std::shared_ptr<const void> owner;
  absl::Span<const uint8_t> bytes;
  // The device in whose memory they are, aligned to 16, where the host cannot read them; null: host
  // memory.
  const Device* device = nullptr;
};

// Description of a message's tensor, besides the payload.
struct MessageHeader {
  MessageKey key;
  DType dtype = DType::kF32;
  Shape shape;
  CodecSpec codec;  // none: the tensor as it is, whatever the boundary's codec
  uint64_t sample_digest = 0;
  bool first_visit = false;  // this and state_digest as in FrameHeader
  std::optional<uint64_t> state_digest;
  std::optional<double> sum_of_squares;        // set in PHASE_GRADIENT_NORM only
  std::vector<uint32_t> document_starts = {};  // as in FrameHeader
};

struct Message : MessageHeader {
  Payload payload;
  SteadyTime arrived = {};  // time of its last byte, with LinkOptions::stamps_arrivals
};

}  // namespace thinwire
