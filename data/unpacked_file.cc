#include "data/unpacked_file.h"

#include <zlib.h>
#include <zstd.h>

#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr std::string_view kGzip = "\x1F\x8B";
constexpr std::string_view kZstd = "\x28\xB5\x2F\xFD";
constexpr std::string_view kSkipped = "\x2A\x4D\x18";  // behind 0x50 to 0x5F: a frame without data
constexpr size_t kPieceBytes = size_t{1} << 20;

// Takes a file in pieces and hands on what it stands for.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  virtual absl::Status Add(std::string_view piece, const FileSink& sink) = 0;
  // Returns an error that says what is missing.
  virtual absl::Status End() const { return absl::OkStatus(); }
};

class Plain final : public Unpacker {
 public:
  absl::Status Add(std::string_view piece, const FileSink& sink) override { return sink(piece); }
};

class Gzip final : public Unpacker {
 public:
  Gzip() : piece_(kPieceBytes) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    is_open_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Gzip() override { inflateEnd(&stream_); }

  absl::Status Add(std::string_view piece, const FileSink& sink) override {
    if (!is_open_) return absl::ResourceExhaustedError("gzip: no memory");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    bool has_more = true;
    while (stream_.avail_in > 0 || has_more) {
      // Another file may follow the one that has ended.
      if (is_complete_ && (stream_.avail_in == 0 || inflateReset(&stream_) != Z_OK)) break;
      stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
      stream_.avail_out = static_cast<uInt>(piece_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return absl::DataLossError(
            absl::StrCat("gzip: ", stream_.msg != nullptr ? stream_.msg : "broken"));
      }
      is_complete_ = result == Z_STREAM_END;
      has_more = stream_.avail_out == 0;
      RETURN_IF_ERROR(sink({piece_.data(), piece_.size() - stream_.avail_out}));
    }
    return absl::OkStatus();
  }
  absl::Status End() const override {
    return is_complete_ ? absl::OkStatus() : absl::DataLossError("gzip: ends too early");
  }

 private:
  z_stream stream_ = {};
  std::vector<char> piece_;
  bool is_open_ = false, is_complete_ = false;
};

class Zstd final : public Unpacker {
 public:
  Zstd() : stream_(ZSTD_createDStream()), piece_(kPieceBytes) {}

  absl::Status Add(std::string_view piece, const FileSink& sink) override {
    if (stream_ == nullptr) return absl::ResourceExhaustedError("zstd: no memory");
    ZSTD_inBuffer in = {piece.data(), piece.size(), 0};
    bool has_more = true;
    while (in.pos < in.size || has_more) {
      ZSTD_outBuffer out = {piece_.data(), piece_.size(), 0};
      const size_t result = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(result) != 0) {
        return absl::DataLossError(absl::StrCat("zstd: ", ZSTD_getErrorName(result)));
      }
      is_complete_ = result == 0;
      has_more = out.pos == out.size && !is_complete_;
      RETURN_IF_ERROR(sink({piece_.data(), out.pos}));
    }
    return absl::OkStatus();
  }
  absl::Status End() const override {
    return is_complete_ ? absl::OkStatus() : absl::DataLossError("zstd: ends too early");
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  const std::unique_ptr<ZSTD_DStream, Free> stream_;
  std::vector<char> piece_;
  bool is_complete_ = false;
};

std::unique_ptr<Unpacker> UnpackerFor(std::string_view begin) {
  if (begin.substr(0, kGzip.size()) == kGzip) return std::make_unique<Gzip>();
  const bool is_skipped = begin.size() > kSkipped.size() && (begin[0] & 0xF0) == 0x50 &&
                          begin.substr(1, kSkipped.size()) == kSkipped;
  if (begin.substr(0, kZstd.size()) == kZstd || is_skipped) return std::make_unique<Zstd>();
  return std::make_unique<Plain>();
}

}  // namespace

absl::Status ReadUnpacked(const std::string& path, const FileSink& sink) {
  std::unique_ptr<Unpacker> unpacker;
  const auto named = [&path](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  };
  absl::Status of_sink;
  const FileSink noted = [&](std::string_view piece) {
    of_sink = piece.empty() ? absl::OkStatus() : sink(piece);
    return of_sink;
  };
  RETURN_IF_ERROR(ReadFile(path, [&](std::string_view piece) {
    if (unpacker == nullptr) unpacker = UnpackerFor(piece);
    const absl::Status status = unpacker->Add(piece, noted);
    return of_sink.ok() ? named(status) : of_sink;
  }));
  return unpacker == nullptr ? absl::OkStatus() : named(unpacker->End());
}

}  // namespace thinwire
