// Writes a message as frames (proto/boundary.proto, docs/wire.md) and parses a frame's bytes.
// Payloads are referenced in both directions, never copied. Knows nothing of gRPC.
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

// Bytes of every chunk of a payload except the last, which may be shorter.
constexpr size_t kMaxChunkBytes = 4 << 20;
// Most bytes of a frame besides its payload: header, checksum, tags, and fields unknown to us.
constexpr size_t kMaxFrameOverhead = 64 << 10;
constexpr size_t kMaxFrameBytes = kMaxChunkBytes + kMaxFrameOverhead;
// Bytes that gRPC puts before each message: one of flags and four of length.
constexpr size_t kGrpcPrefixBytes = 5;

// Returns the number of chunks of a payload, at least 1: an empty payload is sent as one empty
// chunk.
constexpr uint64_t NumChunks(uint64_t payload_bytes) {
  return payload_bytes == 0 ? 1 : (payload_bytes - 1) / kMaxChunkBytes + 1;
}

// A frame to send: `prefix` followed by `payload` is the serialised Frame.
struct OutgoingFrame {
  std::string prefix;
  Payload payload;

  uint64_t wire_bytes() const { return prefix.size() + payload.bytes.size() + kGrpcPrefixBytes; }
};

// Returns the message's chunks in order. Each keeps the message's payload alive.
std::vector<OutgoingFrame> ToFrames(const Message& message, uint64_t run, uint64_t generation);

// ChunkOf returns chunk `chunk` of the message's payload, and ToFrame its frame. `payload_crc32c`
// is the checksum of the chunk's bytes.
absl::Span<const uint8_t> ChunkOf(const Message& message, uint64_t chunk);
OutgoingFrame ToFrame(const Message& message, uint64_t run, uint64_t generation, uint64_t chunk,
                      uint32_t payload_crc32c);

// Returns the wire bytes of a message with this header and `payload_bytes` bytes of payload. That
// is the sum over its ToFrames, which are not made for it. A checksum that happens to be 0 takes no
// bytes in a frame; here it is counted with its 4 bytes and its tag.
uint64_t WireBytes(const MessageHeader& message, uint64_t payload_bytes, uint64_t run,
                   uint64_t generation);

using ByteSpan = absl::Span<const uint8_t>;
using ByteSpans = absl::InlinedVector<ByteSpan, 4>;

inline size_t TotalBytes(absl::Span<const ByteSpan> spans) {
  size_t bytes = 0;
  for (const ByteSpan span : spans) bytes += span.size();
  return bytes;
}
inline ByteSpan BytesOf(const std::string& text) {
  return ByteSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

// A parsed frame, which refers to the parsed bytes.
struct ParsedFrame {
  FrameHeader header;
  ByteSpans payload;  // consecutive parts of the parsed bytes
  size_t payload_bytes = 0;
};

// Parses the frame whose bytes are the concatenation of `parts`. Fields may come in any order and
// unknown ones are skipped; unlike stock protobuf, a repeated field is refused. InvalidArgument if
// the frame is malformed or over a limit, DataLoss if the header's checksum differs. The payload's
// checksum is left to the reader of the payload. The last `unreadable_bytes` are never read; unless
// all of them are the payload's, the frame is malformed.
absl::StatusOr<ParsedFrame> ParseFrame(absl::Span<const ByteSpan> parts,
                                       size_t unreadable_bytes = 0);

}  // namespace thinwire
