// One tensor on its way across a boundary, encoded: who it is, what it is, and its payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "base/steady_time.h"
#include "compress/spec.h"
#include "proto/boundary.pb.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace thinwire {

// Which message: equal at sender and receiver, or something is wrong.
struct MessageKey {
  Phase phase = PHASE_UNSPECIFIED;
  Direction direction = DIRECTION_UNSPECIFIED;
  uint32_t cut = 0;
  uint32_t epoch = 0;  // from 1
  uint64_t step = 0;   // from 1
  uint32_t microbatch = 0;

  friend bool operator==(const MessageKey& a, const MessageKey& b) {
    return a.phase == b.phase && a.direction == b.direction && a.cut == b.cut &&
           a.epoch == b.epoch && a.step == b.step && a.microbatch == b.microbatch;
  }
  // "training activation of cut 1, epoch 2, step 17, microbatch 3"; "sum of squares of gradients
  // before cut 1, epoch 2, step 17"
  std::string ToString() const;
};

class Device;

// Bytes with an owner: encoded in place, handed to gRPC without a copy, freed on its threads.
struct Payload {
  std::shared_ptr<const void> owner;
  absl::Span<const uint8_t> bytes;
  // Whose memory they stand in, aligned to 16, and the host cannot read them; null: the host's.
  const Device* device = nullptr;
};

// What a message says of its tensor beside the payload.
struct MessageHeader {
  MessageKey key;
  DType dtype = DType::kF32;
  Shape shape;
  CodecSpec codec;  // none: the tensor as it is, whatever the boundary's codec
  uint64_t sample_digest = 0;
  bool first_visit = false;  // these two as in FrameHeader
  std::optional<uint64_t> state_digest;
  std::optional<double> sum_of_squares;  // in PHASE_GRADIENT_NORM and only there
};

struct Message : MessageHeader {
  Payload payload;
  SteadyTime arrived = {};  // its last byte, where LinkOptions::stamps_arrivals
};

}  // namespace thinwire
