#include "wire/frame_checker.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "wire/codec_parameters.h"

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

// Extents whose bytes can be counted in an int64, at any element type.
absl::Status CheckShape(const FrameHeader& header) {
  RETURN_IF_ERROR(WantBetween("rank of shape", header.shape_size(), 1, Shape::kMaxRank));
  int64_t room = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(sizeof(double));
  for (uint32_t extent : header.shape()) {
    if (extent > room) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape: extent ", extent, " makes more elements than can be counted"));
    }
    room /= std::max<int64_t>(extent, 1);
  }
  return absl::OkStatus();
}

absl::Status WithPrefix(const LinkOptions& options, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(LinkPrefix(options), status.message()));
}

}  // namespace

std::string LinkPrefix(const LinkOptions& options) {
  return absl::StrCat("cut ", options.name, ", from ", options.peer, ": ");
}

absl::Status FrameChecker::CheckFence(const FrameHeader& header) const {
  RETURN_IF_ERROR(WantFence("run", header.run(), options_.run));
  return WantFence("generation", header.generation(), options_.generation);
}

absl::Status FrameChecker::CheckKey(const FrameHeader& header) const {
  RETURN_IF_ERROR(Want("cut", header.cut(), options_.cut));
  RETURN_IF_ERROR(Want<int>("direction", header.direction(), options_.receives));
  return WantBetween<int>("phase", header.phase(), PHASE_TRAIN, PHASE_EVALUATE_RECALIBRATED);
}

absl::Status FrameChecker::CheckFirst(const FrameHeader& header) const {
  RETURN_IF_ERROR(Want<uint32_t>("chunk", header.chunk(), 0));
  RETURN_IF_ERROR(WantBetween<uint64_t>("payload_bytes", header.payload_bytes(), 0,
                                        options_.max_payload_bytes));
  RETURN_IF_ERROR(Want<uint64_t>("chunks", header.chunks(), NumChunks(header.payload_bytes())));
  RETURN_IF_ERROR(WantBetween<uint32_t>("dtype", header.dtype(), static_cast<uint32_t>(DType::kF32),
                                        static_cast<uint32_t>(DType::kF16)));
  RETURN_IF_ERROR(CheckShape(header));
  return FromParameters(header.codec()).status();
}

absl::Status FrameChecker::CheckContinues(const FrameHeader& header) const {
  RETURN_IF_ERROR(Want("chunk", header.chunk(), next_chunk_));
  RETURN_IF_ERROR(Want("chunks", header.chunks(), first_.chunks()));
  RETURN_IF_ERROR(Want("epoch", header.epoch(), first_.epoch()));
  RETURN_IF_ERROR(Want("step", header.step(), first_.step()));
  RETURN_IF_ERROR(Want("microbatch", header.microbatch(), first_.microbatch()));
  return Want<int>("phase", header.phase(), first_.phase());
}

absl::Status FrameChecker::Check(const ParsedFrame& frame) {
  const FrameHeader& header = frame.header;
  absl::Status status = CheckFence(header);
  if (status.ok()) status = CheckKey(header);
  if (status.ok()) status = next_chunk_ == 0 ? CheckFirst(header) : CheckContinues(header);
  if (!status.ok()) return WithPrefix(options_, status);

  if (next_chunk_ == 0) first_ = header;
  const uint64_t before = uint64_t{next_chunk_} * kMaxChunkBytes;
  const size_t wanted = std::min<uint64_t>(kMaxChunkBytes, first_.payload_bytes() - before);
  status = Want("bytes of payload in the chunk", frame.payload_bytes, wanted);
  if (!status.ok()) return WithPrefix(options_, status);
  next_chunk_ = header.chunk() + 1 == header.chunks() ? 0 : next_chunk_ + 1;
  return absl::OkStatus();
}

}  // namespace thinwire
