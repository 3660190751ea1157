// A frame of the entropy coder on its way to the host: pieces one behind the other, some of which
// the host has made and some of which are in device memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire {

class FrameBytes {
 public:
  // Made by the host; copied here.
  void Add(const uint8_t* bytes, size_t n) { Add({nullptr, {bytes, bytes + n}, n}); }
  // In device memory, which outlives the last call of CopyTo.
  void AddOnDevice(const uint8_t* bytes, size_t n) { Add({bytes, {}, n}); }

  size_t size() const { return size_; }

  // Waits. `to` is host memory of size() bytes.
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
