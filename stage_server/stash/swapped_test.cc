// Tests that tensors and payloads that wait elsewhere come back as they were.
#include <gtest/gtest.h>

#include "compress/cpu/kernels.h"
#include "stage_server/stash/swapped_testing.h"
#include "stage_server/swap/file_place.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

void ExpectSame(const CodecSpec& codec) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir();
  ExpectSwappedTheSame(CpuDevice(), CpuCodecKernels(), codec, *NewFilePlace(CpuDevice(), options));
}

TEST(SwappedStashTest, TensorsComeBackFromDisk) { ExpectSame(CodecSpec()); }

TEST(SwappedStashTest, PayloadsComeBackFromDisk) {
  ExpectSame(CodesOf(8));
  CodecSpec codec;
  codec.lossless = Lossless::kEntropy;
  ExpectSame(codec);
}

}  // namespace
}  // namespace thinwire
