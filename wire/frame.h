// A message as frames (proto/boundary.proto, docs/wire.md) and the fields of a frame from its
// bytes. Payloads are referenced in both directions, never copied. Knows nothing of gRPC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/boundary.pb.h"
#include "wire/message.h"

namespace thinwire {

// Every chunk of a payload is this long, except the last.
constexpr size_t kMaxChunkBytes = 4 << 20;
// What a frame may weigh beside its payload: header, checksum, tags, fields unknown to us.
constexpr size_t kMaxFrameOverhead = 64 << 10;
constexpr size_t kMaxFrameBytes = kMaxChunkBytes + kMaxFrameOverhead;
// gRPC puts one byte of flags and four of length before each message.
constexpr size_t kGrpcPrefixBytes = 5;

// The number of chunks of a payload, at least 1: an empty payload travels as one empty chunk.
constexpr uint64_t NumChunks(uint64_t payload_bytes) {
  return payload_bytes == 0 ? 1 : (payload_bytes - 1) / kMaxChunkBytes + 1;
}

// `prefix` followed by `payload` is the serialised Frame.
struct OutgoingFrame {
  std::string prefix;
  Payload payload;

  uint64_t wire_bytes() const { return prefix.size() + payload.bytes.size() + kGrpcPrefixBytes; }
};

// The message's chunks in order, each holding on to the message's payload.
std::vector<OutgoingFrame> ToFrames(const Message& message, uint64_t run, uint64_t generation);

// Return the part of the message's payload that chunk `chunk` has, and its frame; `payload_crc32c`
// is that of its bytes.
absl::Span<const uint8_t> ChunkOf(const Message& message, uint64_t chunk);
OutgoingFrame ToFrame(const Message& message, uint64_t run, uint64_t generation, uint64_t chunk,
                      uint32_t payload_crc32c);

// The wire bytes of a message with this header and `payload_bytes` bytes of payload: the sum over
// its ToFrames, which need not be made for it. A checksum that happens to be 0 takes no bytes; it
// is counted with its 4 bytes and its tag here.
uint64_t WireBytes(const MessageHeader& message, uint64_t payload_bytes, uint64_t run,
                   uint64_t generation);

using ByteSpan = absl::Span<const uint8_t>;
using ByteSpans = absl::InlinedVector<ByteSpan, 4>;

inline ByteSpan BytesOf(const std::string& text) {
  return ByteSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

struct ParsedFrame {
  FrameHeader header;
  ByteSpans payload;  // consecutive parts, views of what was parsed
  size_t payload_bytes = 0;
};

// Reads the frame whose bytes stand in `parts`, one after the other. Fields may come in any order,
// unknown ones are skipped; unlike stock protobuf a field that comes twice is refused.
// InvalidArgument when malformed or over a limit, DataLoss when the header's checksum differs; the
// payload's checksum is left to whoever reads the payload.
absl::StatusOr<ParsedFrame> ParseFrame(absl::Span<const ByteSpan> parts);

}  // namespace thinwire
