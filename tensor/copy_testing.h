// Copies tensors in tests of code that computes on several devices.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace thinwire {

// Returns a copy of `x` in memory of `device`, made when all that this thread submitted is done.
// One of the two devices is the host.
inline Tensor On(Device* device, const Tensor& x) {
  Tensor copy = *Tensor::Allocate(device, x.dtype(), x.shape());
  const Error error = x.device()->is_host()
                          ? device->CopyFromHost(copy.data(), x.data(), x.bytes())
                          : x.device()->CopyToHost(copy.data(), x.data(), x.bytes());
  EXPECT_TRUE(error.ok()) << error.message;
  return copy;
}

// Returns the bytes of `x` in host memory.
inline std::vector<uint8_t> BytesOf(const Tensor& x) {
  std::vector<uint8_t> bytes(x.bytes());
  const Error error = x.device()->CopyToHost(bytes.data(), x.data(), x.bytes());
  EXPECT_TRUE(error.ok()) << error.message;
  return bytes;
}

}  // namespace thinwire
