// Blocks' tensors for tests of the stash, on any device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "stage_server/stash/tensor_stash.h"

namespace thinwire {

// A stash of a device, with its counts.
struct TestedStash {
  TestedStash(Device* device, CodecKernels* kernels, const CodecSpec& codec,
              OnNonfinite on_nonfinite = OnNonfinite::kError)
      : device(device) {
    options.does.emplace();
    options.does->codec = codec;
    options.does->on_nonfinite = on_nonfinite;
    options.codec_seed = 3;
    options.device = device;
    options.kernels = kernels;
    options.counts = &counts;
    stash = *TensorStash::New(options);
  }

  // Returns a tensor of numbers between -1 and 1, without those below zero with `rectified`.
  Tensor Numbers(const Shape& shape, bool rectified = false, uint64_t seed = 1) const {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(Philox(seed, i)[0]) * 0x1p-31f - 1;
      if (rectified) values[i] = std::max(values[i], 0.0f);
    }
    return Of(values, shape);
  }
  Tensor Of(const std::vector<float>& values, const Shape& shape) const {
    Tensor x = *Tensor::Allocate(device, DType::kF32, shape);
    EXPECT_TRUE(device->CopyFromHost(x.data(), values.data(), x.bytes()).ok());
    return x;
  }
  std::vector<float> Values(const Tensor& x) const {
    std::vector<float> values(static_cast<size_t>(x.elements()));
    EXPECT_TRUE(device->CopyToHost(values.data(), x.data(), x.bytes()).ok());
    return values;
  }

  // Puts tensors away and returns the values of what comes back; *bytes is what they took.
  std::vector<std::vector<float>> RoundTrip(std::vector<KeptTensor> tensors, const Pass& pass,
                                            size_t* bytes = nullptr) {
    const auto stashed = *stash->Put("block", pass, std::move(tensors));
    if (bytes != nullptr) *bytes = stashed->bytes();
    const std::vector<KeptTensor> back = *stash->Take("block", stashed.get());
    std::vector<std::vector<float>> values;
    for (const KeptTensor& kept : back) values.push_back(Values(kept.tensor));
    return values;
  }

  Device* const device;
  StashCounts counts;
  StashOptions options;
  std::unique_ptr<TensorStash> stash;
};

// Returns uniform codes of so many bits, in groups of 64, rounded at random.
inline CodecSpec CodesOf(uint32_t bits) {
  CodecSpec codec = DefaultSpec(CodecKind::kUniform);
  codec.bits = bits;
  codec.scope = Scope::kGroup;
  codec.group = 64;
  codec.rounding = Rounding::kStochastic;
  return codec;
}

}  // namespace thinwire
