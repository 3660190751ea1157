// Frame of the entropy coder on its way to the host: consecutive pieces, some made by the host and
// some in device memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "compress/cuda/rans.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

class FrameBytes {
 public:
  // Appends bytes that the host has made; copies them.
  void Add(const uint8_t* bytes, size_t n) { Add({nullptr, {bytes, bytes + n}, n}); }
  // Appends what a writer has coded and keeps until the last call of CopyTo. If `has_lengths`, each
  // string's length precedes all.
  void AddCoded(const RansWriter& writer, bool has_lengths) {
    const std::vector<uint64_t>& offsets = writer.offsets();
    std::vector<uint32_t> lengths;
    for (size_t part = 0; has_lengths && part + 1 < offsets.size(); ++part) {
      lengths.push_back(static_cast<uint32_t>(offsets[part + 1] - offsets[part]));
    }
    Add(reinterpret_cast<const uint8_t*>(lengths.data()), sizeof(uint32_t) * lengths.size());
    AddOnDevice(writer.packed(), offsets.back());
  }
  // Appends bytes in device memory, which outlive the last call of CopyTo.
  void AddOnDevice(const uint8_t* bytes, size_t n) { Add({bytes, {}, n}); }

  size_t size() const { return size_; }

  // Copies the frame to `to`, host memory of size() bytes. Waits.
  Error CopyTo(CudaDevice* device, uint8_t* to) const {
    for (const Piece& piece : pieces_) {
      if (piece.on_device != nullptr) {
        RETURN_ERROR(device->SubmitCopyToHost(to, piece.on_device, piece.size));
      }
      std::copy(piece.bytes.begin(), piece.bytes.end(), to);
      to += piece.size;
    }
    return device->Finish();
  }

 private:
  struct Piece {
    const uint8_t* on_device;
    std::vector<uint8_t> bytes;
    size_t size;
  };
  void Add(Piece piece) {
    size_ += piece.size;
    pieces_.push_back(std::move(piece));
  }

  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

}  // namespace thinwire
