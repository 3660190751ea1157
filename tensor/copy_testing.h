// For tests of what computes on several devices.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace thinwire {

// A copy of x in memory of `device`, once all that this thread submitted is done. One of the two
// devices is the host.
inline Tensor On(Device* device, const Tensor& x) {
  Tensor copy = *Tensor::Allocate(device, x.dtype(), x.shape());
  const Error error = x.device()->is_host()
                          ? device->CopyFromHost(copy.data(), x.data(), x.bytes())
                          : x.device()->CopyToHost(copy.data(), x.data(), x.bytes());
  EXPECT_TRUE(error.ok()) << error.message;
  return copy;
}

inline std::vector<uint8_t> BytesOf(const Tensor& x) {
  std::vector<uint8_t> bytes(x.bytes());
  const Error error = x.device()->CopyToHost(bytes.data(), x.data(), x.bytes());
  EXPECT_TRUE(error.ok()) << error.message;
  return bytes;
}

}  // namespace thinwire
