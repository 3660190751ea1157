#include "wire/frame_checker.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "wire/codec_parameters.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

template <typename Value>
absl::Status Want(const char* field, Value met, Value wanted) {
  if (met == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", met, ", want ", wanted));
}

template <typename Value>
absl::Status WantBetween(const char* field, Value met, Value least, Value most) {
  if (met >= least && met <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", met, ", want ", least, " to ", most));
}

template <typename Value>
absl::Status WantFence(const char* field, Value met, Value held) {
  if (met == held) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(field, " of the frame is ", met, ", this stage holds ", held));
}

// Reads the shape. Refuses extents whose bytes do not fit into an int64 at any element type.
absl::StatusOr<Shape> ReadShape(const FrameHeader& header) {
  RETURN_IF_ERROR(WantBetween("rank of shape", header.shape_size(), 1, Shape::kMaxRank));
  Shape shape;
  int64_t room = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(sizeof(double));
  for (uint32_t extent : header.shape()) {
    if (extent > room) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape: extent ", extent, " makes more elements than can be counted"));
    }
    room /= std::max<int64_t>(extent, 1);
    shape.Append(extent);
  }
  return shape;
}

// Checks the sum of squares: it must be present, without a payload, in its own phase, and absent in
// all others.
absl::Status CheckSum(const FrameHeader& header) {
  if (!HasSumOfSquares(header.phase())) {
    return Want("presence of sum_of_squares", header.has_sum_of_squares(), false);
  }
  RETURN_IF_ERROR(Want("presence of sum_of_squares", header.has_sum_of_squares(), true));
  RETURN_IF_ERROR(Want<uint64_t>("payload_bytes", header.payload_bytes(), 0));
  return WantBetween("sum_of_squares", header.sum_of_squares(), 0.0,
                     std::numeric_limits<double>::max());
}

MessageKey KeyOf(const FrameHeader& header) {
  return {header.phase(), header.direction(), header.cut(),
          header.epoch(), header.step(),      header.microbatch()};
}

}  // namespace

std::string LinkName(const LinkOptions& options) {
  return absl::StrCat(options.is_among_carriers ? "" : "cut ", options.name);
}

std::string LinkAndPeer(const LinkOptions& options) {
  return absl::StrCat(LinkName(options), ", from ", options.peer);
}

absl::Status FrameChecker::CheckFence(const FrameHeader& header) const {
  RETURN_IF_ERROR(WantFence("run", header.run(), options_.run));
  return WantFence("generation", header.generation(), options_.generation);
}

absl::Status FrameChecker::CheckKey(const FrameHeader& header) const {
  if (options_.is_among_parts) {
    RETURN_IF_ERROR(WantBetween<int>("direction", header.direction(), DIRECTION_ACTIVATION,
                                     DIRECTION_GRADIENT));
    if (header.phase() == PHASE_PART || header.phase() == PHASE_CALIBRATE) return absl::OkStatus();
    return WantBetween<int>("phase", header.phase(), PHASE_TRAIN, PHASE_GENERATE);
  }
  RETURN_IF_ERROR(Want<int>("direction", header.direction(), options_.receives));
  if (options_.is_among_carriers) {
    if (header.phase() == PHASE_READY) return absl::OkStatus();
    return WantBetween<int>("phase", header.phase(), PHASE_CONTRIBUTION, PHASE_SECOND_AVERAGE);
  }
  RETURN_IF_ERROR(Want("cut", header.cut(), options_.cut));
  if (header.phase() == PHASE_TAKEN || header.phase() == PHASE_CALIBRATE) return absl::OkStatus();
  return WantBetween<int>("phase", header.phase(), PHASE_TRAIN, PHASE_BASIS);
}

absl::StatusOr<MessageHeader> FrameChecker::ReadFirst(const FrameHeader& header) const {
  RETURN_IF_ERROR(Want<uint32_t>("chunk", header.chunk(), 0));
  RETURN_IF_ERROR(WantBetween<uint64_t>("payload_bytes", header.payload_bytes(), 0,
                                        options_.max_payload_bytes));
  RETURN_IF_ERROR(Want<uint64_t>("chunks", header.chunks(), NumChunks(header.payload_bytes())));
  RETURN_IF_ERROR(WantBetween<int>("dtype", header.dtype(), static_cast<int>(DType::kF32),
                                   static_cast<int>(DType::kF16)));
  MessageHeader message;
  message.key = KeyOf(header);
  message.dtype = static_cast<DType>(header.dtype());
  ASSIGN_OR_RETURN(message.shape, ReadShape(header));
  ASSIGN_OR_RETURN(message.codec, FromParameters(header.codec()));
  message.sample_digest = header.sample_digest();
  message.first_visit = header.first_visit();
  if (header.has_state_digest()) message.state_digest = header.state_digest();
  RETURN_IF_ERROR(CheckSum(header));
  if (header.has_sum_of_squares()) message.sum_of_squares = header.sum_of_squares();
  message.document_starts = {header.document_starts().begin(), header.document_starts().end()};
  return message;
}

absl::Status FrameChecker::CheckContinues(const FrameHeader& header) const {
  RETURN_IF_ERROR(Want("chunk", header.chunk(), next_chunk_));
  RETURN_IF_ERROR(Want("chunks", header.chunks(), first_.chunks()));
  RETURN_IF_ERROR(Want<int>("direction", header.direction(), first_.direction()));
  RETURN_IF_ERROR(Want("cut", header.cut(), first_.cut()));
  RETURN_IF_ERROR(Want("epoch", header.epoch(), first_.epoch()));
  RETURN_IF_ERROR(Want("step", header.step(), first_.step()));
  RETURN_IF_ERROR(Want("microbatch", header.microbatch(), first_.microbatch()));
  return Want<int>("phase", header.phase(), first_.phase());
}

absl::StatusOr<PayloadChunk> FrameChecker::Read(const ParsedFrame& frame) {
  const FrameHeader& header = frame.header;
  // The fence first: a frame of an older generation is refused as that, whatever else it has.
  RETURN_IF_ERROR(CheckFence(header));
  RETURN_IF_ERROR(CheckKey(header));
  PayloadChunk chunk;
  if (next_chunk_ == 0) {
    ASSIGN_OR_RETURN(chunk.message, ReadFirst(header));
    first_ = header;
  } else {
    RETURN_IF_ERROR(CheckContinues(header));
  }
  chunk.message_bytes = first_.payload_bytes();
  // Never beyond message_bytes: ReadFirst has checked that `chunks` is what those bytes take.
  const uint64_t before = uint64_t{next_chunk_} * kMaxChunkBytes;
  const size_t wanted = std::min<uint64_t>(kMaxChunkBytes, chunk.message_bytes - before);
  RETURN_IF_ERROR(Want("bytes of payload in the chunk", frame.payload_bytes, wanted));
  chunk.index = header.chunk();
  chunk.count = header.chunks();
  chunk.payload = frame.payload;
  chunk.payload_crc32c = header.payload_crc32c();
  next_chunk_ = chunk.is_last() ? 0 : next_chunk_ + 1;
  return chunk;
}

absl::StatusOr<PayloadChunk> FrameChecker::Check(const ParsedFrame& frame) {
  absl::StatusOr<PayloadChunk> chunk = Read(frame);
  if (chunk.ok()) return chunk;
  return Annotated(chunk.status(), LinkAndPeer(options_));
}

}  // namespace thinwire
