// A stash of any device with a swapper, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stage_server/stash/stash_testing.h"
#include "stage_server/swap/swapper.h"

namespace thinwire {

// Puts blocks of several passes away, with a codec or without, and expects of each what a stash
// without a swapper gives. All of them have left the device meanwhile, but for a few.
inline void ExpectSwappedTheSame(Device* device, CodecKernels* kernels, const CodecSpec& codec,
                                 std::unique_ptr<SwapPlace> place) {
  constexpr int kPasses = 3, kBlocks = 4;
  TestedStash plain(device, kernels, codec), swapped(device, kernels, codec);
  Swapper swapper(std::move(place), std::make_shared<Patience>());
  swapper.Expect({{0, 0, 0}, {0, 4, 0}, {0, 8, 0}});
  swapped.options.swapper = &swapper;
  for (int i = 0; i < kBlocks; ++i) swapped.options.swapped.insert("b" + std::to_string(i));
  swapped.stash = *TensorStash::New(swapped.options);
  const auto tensors = [&](const TestedStash& tested, int pass, int block) {
    const auto seed = static_cast<uint64_t>(kBlocks * pass + block);
    const Tensor x = tested.Numbers({4, 64, 96}, false, seed);
    const Tensor y = tested.Numbers({4, 64, 32}, true, seed + 100);
    return std::vector<KeptTensor>{{x}, {y, Needed::kSigns}, {y}, {x, Needed::kExact}, {Tensor()}};
  };
  const auto pass_of = [](int pass) { return Pass(Mode::kTrain, 1, 4 * pass); };
  std::vector<std::shared_ptr<StashedTensors>> away;
  const size_t before = device->bytes_in_use();
  size_t put = 0;
  for (int i = 0; i < kPasses * kBlocks; ++i) {
    const int pass = i / kBlocks, block = i % kBlocks;
    auto all = tensors(swapped, pass, block);
    put += all[0].tensor.bytes() + all[1].tensor.bytes();
    away.push_back(*swapped.stash->Put("b" + std::to_string(block), pass_of(pass), std::move(all)));
    EXPECT_LT(away.back()->bytes(), put / static_cast<size_t>(i + 1) / 8);
  }
  EXPECT_LE(device->bytes_in_use() - before, put / 2);
  for (int pass = 0; pass < kPasses; ++pass) {
    for (int block = kBlocks; block-- > 0;) {
      const std::string name = "b" + std::to_string(block);
      const auto wanted = *plain.stash->Take(
          name, plain.stash->Put(name, pass_of(pass), tensors(plain, pass, block))->get());
      const auto back = *swapped.stash->Take(name, away[kBlocks * pass + block].get());
      ASSERT_EQ(back.size(), wanted.size());
      for (size_t i = 0; i + 1 < back.size(); ++i) {
        EXPECT_EQ(swapped.Values(back[i].tensor), plain.Values(wanted[i].tensor))
            << name << " " << i;
      }
      EXPECT_TRUE(back.back().tensor.empty());
    }
  }
  EXPECT_GT(swapper.counts().bytes_out, 0u);
}

}  // namespace thinwire
