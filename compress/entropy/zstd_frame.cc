#include "compress/entropy/zstd_frame.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "compress/bytes.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

constexpr int kLevel = 1;
constexpr size_t kMagicBytes = 4;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Returns this thread's compressor. Frames have no checksum, because the message has its own.
ZSTD_CCtx* ThreadsCompressor() {
  static thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context;
  if (context != nullptr) return context.get();
  context.reset(ZSTD_createCCtx());
  if (context != nullptr) {
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 0);
  }
  return context.get();
}

ZSTD_DCtx* ThreadsDecompressor() {
  static thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context;
  if (context == nullptr) context.reset(ZSTD_createDCtx());
  return context.get();
}

absl::Status NoMemory() { return absl::ResourceExhaustedError("zstd: no memory for its tables"); }

absl::Status RefuseFrame(const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("zstd: ", why));
}

}  // namespace

absl::StatusOr<absl::Span<const uint8_t>> ZstdFrame(absl::Span<const uint8_t> bytes) {
  static thread_local Scratch<uint8_t> memory;
  if (bytes.empty()) return absl::Span<const uint8_t>();
  ZSTD_CCtx* const context = ThreadsCompressor();
  if (context == nullptr) return NoMemory();
  const size_t capacity = bytes.size() - 1;  // a frame that is not shorter does not pay
  uint8_t* const frame = memory.Get(capacity);
  const size_t length = ZSTD_compress2(context, frame, capacity, bytes.data(), bytes.size());
  if (!ZSTD_isError(length)) return absl::MakeConstSpan(frame, length);
  if (ZSTD_getErrorCode(length) == ZSTD_error_dstSize_tooSmall) return absl::Span<const uint8_t>();
  if (ZSTD_getErrorCode(length) == ZSTD_error_memory_allocation) return NoMemory();
  return absl::InternalError(absl::StrCat("zstd: ", ZSTD_getErrorName(length)));
}

absl::StatusOr<absl::Span<const uint8_t>> ReadZstdFrame(absl::Span<const uint8_t> frame,
                                                        size_t most) {
  static thread_local Scratch<uint8_t> memory;
  // The library would also read frames of its old formats, skip others and go on after the first.
  if (frame.size() < kMagicBytes || LoadAs<uint32_t>(frame.data()) != ZSTD_MAGICNUMBER) {
    return RefuseFrame("not a frame");
  }
  const size_t length = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(length)) return RefuseFrame(ZSTD_getErrorName(length));
  if (length != frame.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("zstd: a frame of ", length, " bytes in ", frame.size()));
  }
  ZSTD_DCtx* const context = ThreadsDecompressor();
  if (context == nullptr) return NoMemory();
  uint8_t* const bytes = memory.Get(most);
  const size_t num_bytes = ZSTD_decompressDCtx(context, bytes, most, frame.data(), frame.size());
  if (ZSTD_isError(num_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("zstd: ", ZSTD_getErrorName(num_bytes),
                                                   ", want a frame of at most ", most, " bytes"));
  }
  return absl::MakeConstSpan(bytes, num_bytes);
}

}  // namespace thinwire
