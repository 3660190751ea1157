#include "coordinator/plan/wire_bytes.h"

#include <algorithm>

#include "proto/boundary.pb.h"

namespace thinwire {
namespace {

// docs/wire.md: payloads travel in chunks of this size; gRPC puts 5 bytes before each frame.
constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr int64_t kGrpcPrefixBytes = 5;

}  // namespace

int64_t WireBytes(const CodecSpec& codec, const Shape& shape, int64_t payload_bytes) {
  FrameHeader header;
  header.set_run(1);
  header.set_generation(1);
  header.set_epoch(1);
  header.set_step(10'000);
  header.set_microbatch(1);
  header.set_phase(PHASE_TRAIN);
  header.set_direction(DIRECTION_ACTIVATION);
  header.set_cut(1);
  header.set_payload_crc32c(1);
  const int64_t chunks = std::max<int64_t>(1, (payload_bytes + kChunkBytes - 1) / kChunkBytes);
  header.set_chunks(static_cast<uint32_t>(chunks));
  int64_t bytes = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Frame frame;
    frame.set_header_crc32c(1);
    *frame.mutable_header() = header;
    frame.mutable_header()->set_chunk(static_cast<uint32_t>(chunk));
    if (chunk == 0) {
      FrameHeader& first = *frame.mutable_header();
      first.set_dtype(1);
      for (int64_t extent : shape) first.add_shape(static_cast<uint32_t>(extent));
      first.mutable_codec()->set_kind(static_cast<uint32_t>(codec.kind));
      first.mutable_codec()->set_bits(codec.bits);
      first.mutable_codec()->set_ratio(codec.ratio);
      first.mutable_codec()->set_scope(static_cast<uint32_t>(codec.scope));
      first.set_sample_digest(1);
      first.set_payload_bytes(static_cast<uint64_t>(payload_bytes));
    }
    // The payload's own tag and length take at most 5 bytes.
    bytes += static_cast<int64_t>(frame.ByteSizeLong()) + 5 + kGrpcPrefixBytes;
  }
  return bytes + payload_bytes;
}

}  // namespace thinwire
