// Input of a fuzz target that sends frames, and frames that the checks of sums let through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/crc32c.h"
#include "proto/boundary.pb.h"

namespace thinwire {

// Takes values from the front of the input; they are shorter where the input ends.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }

  std::string Take(size_t size) {
    size = size < left_ ? size : left_;
    const std::string bytes(reinterpret_cast<const char*>(data_), size);
    data_ += size;
    left_ -= size;
    return bytes;
  }
  // Reads a big-endian number.
  size_t TakeNumber(size_t bytes) {
    size_t number = 0;
    for (unsigned char byte : Take(bytes)) number = number << 8 | byte;
    return number;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// Returns the frame of this header and payload, with correct checksums.
inline std::string Sealed(const std::string& header_bytes, const std::string& payload) {
  Frame frame;
  if (!frame.mutable_header()->ParseFromString(header_bytes)) return header_bytes;
  frame.mutable_header()->set_payload_crc32c(Crc32c(payload.data(), payload.size()));
  const std::string header = frame.header().SerializeAsString();
  frame.set_header_crc32c(Crc32c(header.data(), header.size()));
  frame.set_payload(payload);
  return frame.SerializeAsString();
}

}  // namespace thinwire
