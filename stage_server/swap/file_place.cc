#include "stage_server/swap/file_place.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "stage_server/swap/room.h"

namespace thinwire {
namespace {

constexpr size_t kUnit = SwapFile::kUnit;
constexpr size_t kPieceBytes = size_t{4} << 20;  // of a read or write

size_t InUnits(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// Aligned host memory of one thread, through which a file's bytes go.
class Piece {
 public:
  absl::Status Allocate(Device* host) {
    ASSIGN_OR_RETURN(memory_, Buffer::Allocate(host, kPieceBytes + kUnit));
    const auto address = reinterpret_cast<uintptr_t>(memory_->data());
    data_ = static_cast<uint8_t*>(memory_->data()) + (InUnits(address) - address);
    return absl::OkStatus();
  }
  uint8_t* data() const { return data_; }

  // Copies between it and memory of a device, and adds the bytes to a checksum.
  absl::Status CopyFrom(Device* device, const uint8_t* from, size_t bytes, uint32_t* crc) const {
    if (device->is_host()) {
      *crc = ExtendCrc32cAndCopy(*crc, data_, from, bytes);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ToStatus(device->CopyToHost(data_, from, bytes)));
    *crc = ExtendCrc32c(*crc, data_, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyTo(Device* device, uint8_t* to, size_t bytes, uint32_t* crc) const {
    if (device->is_host()) {
      *crc = ExtendCrc32cAndCopy(*crc, to, data_, bytes);
      return absl::OkStatus();
    }
    *crc = ExtendCrc32c(*crc, data_, bytes);
    return ToStatus(device->CopyFromHost(to, data_, bytes));
  }

 private:
  std::shared_ptr<Buffer> memory_;
  uint8_t* data_ = nullptr;
};

class FilePlace final : public SwapPlace {
 public:
  explicit FilePlace(std::unique_ptr<SwapFile> file) : file_(std::move(file)) {}

  absl::Status Allocate(Device* host) {
    RETURN_IF_ERROR(leaving_.Allocate(host));
    return coming_.Allocate(host);
  }

  bool Relieves(const Device& /*device*/) const override { return true; }
  absl::StatusOr<std::unique_ptr<SwappedBytes>> Write(const Buffer& memory, size_t bytes) override;

 private:
  class Range final : public SwappedBytes {
   public:
    // Takes room for bytes of `device`.
    Range(FilePlace* place, Device* device, size_t bytes);
    ~Range() override;
    absl::Status Write(const uint8_t* from);
    absl::StatusOr<std::shared_ptr<Buffer>> Read() override;

   private:
    FilePlace* const place_;
    Device* const device_;
    const size_t bytes_;
    uint64_t begin_;
    uint32_t crc_ = 0;
  };

  const std::unique_ptr<SwapFile> file_;
  Piece leaving_, coming_;  // of the threads that write and read
  std::mutex mutex_;        // not absl's: the thread sanitizer would not see it
  Room room_ ABSL_GUARDED_BY(mutex_);
};

FilePlace::Range::Range(FilePlace* place, Device* device, size_t bytes)
    : place_(place), device_(device), bytes_(bytes) {
  const std::lock_guard<std::mutex> lock(place_->mutex_);
  begin_ = place_->room_.Take(InUnits(bytes_));
}

FilePlace::Range::~Range() {
  const std::lock_guard<std::mutex> lock(place_->mutex_);
  place_->room_.Free(begin_, InUnits(bytes_));
}

absl::Status FilePlace::Range::Write(const uint8_t* from) {
  const Piece& piece = place_->leaving_;
  for (size_t at = 0; at < bytes_; at += kPieceBytes) {
    const size_t bytes = std::min(bytes_ - at, kPieceBytes);
    RETURN_IF_ERROR(piece.CopyFrom(device_, from + at, bytes, &crc_));
    std::memset(piece.data() + bytes, 0, InUnits(bytes) - bytes);
    RETURN_IF_ERROR(place_->file_->Write(begin_ + at, piece.data(), InUnits(bytes)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> FilePlace::Range::Read() {
  ASSIGN_OR_RETURN(auto memory, Buffer::Allocate(device_, bytes_));
  const Piece& piece = place_->coming_;
  uint32_t crc = 0;
  for (size_t at = 0; at < bytes_; at += kPieceBytes) {
    const size_t bytes = std::min(bytes_ - at, kPieceBytes);
    RETURN_IF_ERROR(place_->file_->Read(begin_ + at, piece.data(), InUnits(bytes)));
    RETURN_IF_ERROR(piece.CopyTo(device_, static_cast<uint8_t*>(memory->data()) + at, bytes, &crc));
  }
  if (crc == crc_) return memory;
  return absl::DataLossError(absl::StrCat(place_->file_->name(), ": ", bytes_, " bytes at ", begin_,
                                          " have the CRC-32C ", crc, ", want ", crc_));
}

absl::StatusOr<std::unique_ptr<SwappedBytes>> FilePlace::Write(const Buffer& memory, size_t bytes) {
  auto range = std::make_unique<Range>(this, memory.device(), bytes);
  RETURN_IF_ERROR(range->Write(static_cast<const uint8_t*>(memory.data())));
  return range;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SwapPlace>> NewFilePlace(Device* device,
                                                        const SwapFileOptions& options) {
  ASSIGN_OR_RETURN(auto file, SwapFile::Open(options));
  auto place = std::make_unique<FilePlace>(std::move(file));
  RETURN_IF_ERROR(place->Allocate(device->host()));
  return place;
}

}  // namespace thinwire
