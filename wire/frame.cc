#include "wire/frame.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "wire/codec_parameters.h"

namespace thinwire {
namespace {

// Numbers of the fields of Frame.
enum FrameField : uint32_t { kHeader = 1, kHeaderChecksum = 2, kPayload = 3 };

// Wire types of protobuf's encoding.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// Returns protobuf's tag: the field's number above the 3 bits of its wire type.
constexpr uint8_t Tag(FrameField field, Wire wire) {
  return static_cast<uint8_t>(field << 3 | wire);
}

// Appends protobuf's varint: 7 bits a byte, lowest first. The top bit of a byte says that more
// bytes follow.
void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

// Returns everything of a frame but its payload's bytes. A field that is zero or empty is left out,
// as in all of proto3.
std::string Prefix(const std::string& header, uint32_t header_crc32c, size_t payload_bytes) {
  std::string prefix(1, static_cast<char>(Tag(kHeader, kLength)));
  AppendVarint(header.size(), &prefix);
  prefix += header;
  if (header_crc32c != 0) {
    prefix.push_back(static_cast<char>(Tag(kHeaderChecksum, kFixed32)));
    // Little-endian: the lowest byte first.
    for (int shift = 0; shift < 32; shift += 8) {
      prefix.push_back(static_cast<char>(header_crc32c >> shift));
    }
  }
  if (payload_bytes > 0) {
    prefix.push_back(static_cast<char>(Tag(kPayload, kLength)));
    AppendVarint(payload_bytes, &prefix);
  }
  return prefix;
}

void DescribeTensor(const MessageHeader& message, uint64_t payload_bytes, FrameHeader* header) {
  header->set_dtype(static_cast<FrameHeader::ElementType>(message.dtype));
  for (int64_t extent : message.shape) header->add_shape(static_cast<uint32_t>(extent));
  *header->mutable_codec() = ToParameters(message.codec);
  header->set_sample_digest(message.sample_digest);
  header->set_payload_bytes(payload_bytes);
  header->set_first_visit(message.first_visit);
  if (message.state_digest) header->set_state_digest(*message.state_digest);
  if (message.sum_of_squares) header->set_sum_of_squares(*message.sum_of_squares);
  for (const uint32_t start : message.document_starts) header->add_document_starts(start);
}

// Returns the header of one chunk of a message with `payload_bytes` bytes of payload, without the
// checksum.
FrameHeader ChunkHeader(const MessageHeader& message, uint64_t payload_bytes, uint64_t chunk,
                        uint64_t run, uint64_t generation) {
  FrameHeader header;
  header.set_run(run);
  header.set_generation(generation);
  header.set_epoch(message.key.epoch);
  header.set_step(message.key.step);
  header.set_microbatch(message.key.microbatch);
  header.set_phase(message.key.phase);
  header.set_direction(message.key.direction);
  header.set_cut(message.key.cut);
  header.set_chunk(static_cast<uint32_t>(chunk));
  header.set_chunks(static_cast<uint32_t>(NumChunks(payload_bytes)));
  if (chunk == 0) DescribeTensor(message, payload_bytes, &header);
  return header;
}

absl::Status Truncated(const char* what, uint64_t wanted, uint64_t left) {
  return absl::InvalidArgumentError(
      absl::StrCat("frame ends in ", what, ": ", left, " bytes left, want ", wanted));
}

// Reads scattered bytes from front to back, never past their end, and nothing of the last
// `unreadable` bytes.
class Cursor {
 public:
  Cursor(absl::Span<const ByteSpan> parts, uint64_t unreadable)
      : parts_(parts), unreadable_(unreadable), left_(TotalBytes(parts)) {}
  uint64_t left() const { return left_; }

  // Appends the next `size` bytes, which may be read, to *spans.
  absl::Status Take(const char* what, uint64_t size, ByteSpans* spans) {
    const uint64_t readable = left_ > unreadable_ ? left_ - unreadable_ : 0;
    if (size > readable) return Truncated(what, size, readable);
    return TakeUnread(what, size, spans);
  }

  // Does the same with bytes of which some may be unreadable.
  absl::Status TakeUnread(const char* what, uint64_t size, ByteSpans* spans) {
    if (size > left_) return Truncated(what, size, left_);
    left_ -= size;
    while (size > 0) {
      const ByteSpan part = parts_.front().subspan(offset_);
      const ByteSpan taken = part.subspan(0, std::min<uint64_t>(size, part.size()));
      if (!taken.empty()) spans->push_back(taken);
      size -= taken.size();
      offset_ += taken.size();
      if (offset_ == parts_.front().size()) {
        parts_.remove_prefix(1);
        offset_ = 0;
      }
    }
    return absl::OkStatus();
  }

  // Reads four bytes, lowest first, which may be spread over several spans.
  absl::Status TakeFixed32(const char* what, uint32_t* value) {
    ByteSpans spans;
    RETURN_IF_ERROR(Take(what, 4, &spans));
    int shift = 0;
    *value = 0;
    for (ByteSpan span : spans) {
      for (uint8_t byte : span) {
        *value |= uint32_t{byte} << shift;
        shift += 8;
      }
    }
    return absl::OkStatus();
  }

  // Reads what AppendVarint writes: bits 0-6 of each byte go above those before them, and bit 7
  // says that another byte follows. The tenth byte has room for one bit, the 64th.
  absl::Status TakeVarint(const char* what, uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      ByteSpans spans;
      RETURN_IF_ERROR(Take(what, 1, &spans));
      const uint8_t byte = spans[0][0];
      if (shift == 63 && byte > 1) break;
      *value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("frame: ", what, " is longer than 64 bits"));
  }

 private:
  absl::Span<const ByteSpan> parts_;
  const uint64_t unreadable_;
  size_t offset_ = 0;  // within the first part
  uint64_t left_;
};

// Collects the fields of one frame.
class FrameReader {
 public:
  FrameReader(absl::Span<const ByteSpan> parts, size_t unreadable_bytes)
      : cursor_(parts, unreadable_bytes) {}

  absl::StatusOr<ParsedFrame> Read() {
    const uint64_t frame_bytes = cursor_.left();
    while (cursor_.left() > 0) RETURN_IF_ERROR(ReadField());
    frame_.payload_bytes = TotalBytes(frame_.payload);
    RETURN_IF_ERROR(CheckLimits(frame_bytes));
    RETURN_IF_ERROR(ReadHeader());
    return std::move(frame_);
  }

 private:
  absl::Status ReadField() {
    uint64_t tag = 0;
    RETURN_IF_ERROR(cursor_.TakeVarint("a tag", &tag));
    // Splits the tag as Tag makes it: field number above 3 bits of wire type.
    const uint64_t field = tag >> 3;
    const Wire wire = static_cast<Wire>(tag & 7);
    switch (field) {
      case kHeader:
        RETURN_IF_ERROR(Claim(field, wire, kLength));
        return TakeLength("the header", &header_);
      case kHeaderChecksum:
        RETURN_IF_ERROR(Claim(field, wire, kFixed32));
        return cursor_.TakeFixed32("the header's checksum", &header_crc32c_);
      case kPayload:
        RETURN_IF_ERROR(Claim(field, wire, kLength));
        return TakePayload();
      default:
        return Skip(field, wire);
    }
  }

  // Marks the field in bit `field` of seen_. If the bit is set already, the field stands in the
  // frame twice.
  absl::Status Claim(uint64_t field, Wire wire, Wire wanted) {
    if (wire != wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("frame: field ", field, " has wire type ", wire, ", want ", wanted));
    }
    const uint32_t bit = 1u << field;
    if (seen_ & bit) {
      return absl::InvalidArgumentError(absl::StrCat("frame: field ", field, " stands twice"));
    }
    seen_ |= bit;
    return absl::OkStatus();
  }

  absl::Status TakeLength(const char* what, ByteSpans* spans) {
    uint64_t size = 0;
    RETURN_IF_ERROR(cursor_.TakeVarint(what, &size));
    return cursor_.Take(what, size, spans);
  }

  absl::Status TakePayload() {
    uint64_t size = 0;
    RETURN_IF_ERROR(cursor_.TakeVarint("the payload", &size));
    return cursor_.TakeUnread("the payload", size, &frame_.payload);
  }

  absl::Status Skip(uint64_t field, Wire wire) {
    constexpr uint64_t kMaxField = (1u << 29) - 1;
    if (field == 0 || field > kMaxField) {
      return absl::InvalidArgumentError(
          absl::StrCat("frame: field number ", field, ", want 1 to ", kMaxField));
    }
    uint64_t value = 0;
    ByteSpans skipped;
    switch (wire) {
      case kVarint:
        return cursor_.TakeVarint("an unknown field", &value);
      case kFixed64:
        return cursor_.Take("an unknown field", 8, &skipped);
      case kLength:
        return TakeLength("an unknown field", &skipped);
      case kFixed32:
        return cursor_.Take("an unknown field", 4, &skipped);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("frame: field ", field, " has wire type ", wire, ", want 0, 1, 2 or 5"));
  }

  absl::Status CheckLimits(uint64_t frame_bytes) const {
    if (frame_.payload_bytes > kMaxChunkBytes) {
      return absl::InvalidArgumentError(absl::StrCat("frame: payload of ", frame_.payload_bytes,
                                                     " bytes, want at most ", kMaxChunkBytes));
    }
    if (frame_bytes - frame_.payload_bytes > kMaxFrameOverhead) {
      return absl::InvalidArgumentError(absl::StrCat("frame: ", frame_bytes - frame_.payload_bytes,
                                                     " bytes beside the payload, want at most ",
                                                     kMaxFrameOverhead));
    }
    return absl::OkStatus();
  }

  absl::Status ReadHeader() {
    if ((seen_ & (1u << kHeader)) == 0) {
      return absl::InvalidArgumentError("frame: no header");
    }
    std::string bytes;
    for (ByteSpan span : header_) {
      bytes.append(reinterpret_cast<const char*>(span.data()), span.size());
    }
    const uint32_t crc = Crc32c(bytes.data(), bytes.size());
    if (crc != header_crc32c_) {
      return absl::DataLossError(absl::StrFormat(
          "frame: header_crc32c is %#010x, the header's bytes give %#010x", header_crc32c_, crc));
    }
    if (!frame_.header.ParseFromString(bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("frame: ", bytes.size(), " bytes of header are not a FrameHeader"));
    }
    return absl::OkStatus();
  }

  Cursor cursor_;
  uint32_t seen_ = 0;  // bit i: field i has come
  ByteSpans header_;
  uint32_t header_crc32c_ = 0;
  ParsedFrame frame_;
};

}  // namespace

ByteSpan ChunkOf(const Message& message, uint64_t chunk) {
  return message.payload.bytes.subspan(chunk * kMaxChunkBytes, kMaxChunkBytes);
}

OutgoingFrame ToFrame(const Message& message, uint64_t run, uint64_t generation, uint64_t chunk,
                      uint32_t payload_crc32c) {
  const ByteSpan bytes = ChunkOf(message, chunk);
  FrameHeader header = ChunkHeader(message, message.payload.bytes.size(), chunk, run, generation);
  header.set_payload_crc32c(payload_crc32c);
  const std::string header_bytes = header.SerializeAsString();
  return {Prefix(header_bytes, Crc32c(header_bytes.data(), header_bytes.size()), bytes.size()),
          {message.payload.owner, bytes}};
}

std::vector<OutgoingFrame> ToFrames(const Message& message, uint64_t run, uint64_t generation) {
  std::vector<OutgoingFrame> frames;
  for (uint64_t i = 0; i < NumChunks(message.payload.bytes.size()); ++i) {
    const ByteSpan bytes = ChunkOf(message, i);
    frames.push_back(ToFrame(message, run, generation, i, Crc32c(bytes.data(), bytes.size())));
  }
  return frames;
}

uint64_t WireBytes(const MessageHeader& message, uint64_t payload_bytes, uint64_t run,
                   uint64_t generation) {
  uint64_t wire_bytes = 0;
  for (uint64_t i = 0; i < NumChunks(payload_bytes); ++i) {
    const size_t chunk_bytes =
        std::min<uint64_t>(kMaxChunkBytes, payload_bytes - i * kMaxChunkBytes);
    FrameHeader header = ChunkHeader(message, payload_bytes, i, run, generation);
    // Every checksum takes as many bytes as this one except 0, which is that of an empty payload.
    if (chunk_bytes > 0) header.set_payload_crc32c(1);
    wire_bytes += Prefix(header.SerializeAsString(), /*header_crc32c=*/1, chunk_bytes).size() +
                  chunk_bytes + kGrpcPrefixBytes;
  }
  return wire_bytes;
}

absl::StatusOr<ParsedFrame> ParseFrame(absl::Span<const ByteSpan> parts, size_t unreadable_bytes) {
  return FrameReader(parts, unreadable_bytes).Read();
}

}  // namespace thinwire
