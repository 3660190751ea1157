// Tests that a stash in a GPU's memory gives what one in the host's gives. The GPU is the emulated
// one.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "compress/cpu/kernels.h"
#include "compress/cuda/kernels.h"
#include "stage_server/stash/stash_testing.h"
#include "stage_server/stash/swapped_testing.h"
#include "stage_server/swap/file_place.h"
#include "stage_server/swap/host_place.h"
#include "tensor/cpu/device.h"
#include "tensor/cuda/device.h"

namespace thinwire {
namespace {

class EmulatedStashTest : public ::testing::Test {
 protected:
  EmulatedStashTest() {
    EXPECT_TRUE(NewCudaDevice(0, &device_).ok());
    kernels_ = std::make_unique<CudaKernels>(device_);
  }

  // Expects equal values and bytes of both.
  void ExpectTwins(const CodecSpec& codec) {
    TestedStash host(CpuDevice(), CpuCodecKernels(), codec);
    TestedStash gpu(device_, kernels_.get(), codec);
    const Shape shape = {4, 32, 100};
    const auto round_trip = [&shape](TestedStash* tested, size_t* bytes) {
      const Tensor x = tested->Numbers(shape), y = tested->Numbers(shape, true, 2);
      const Tensor z = tested->Numbers(shape, true, 3);
      return tested->RoundTrip({{x}, {y, Needed::kSigns}, {y}, {z, Needed::kSigns}},
                               Pass(Mode::kTrain, 3, 4), bytes);
    };
    size_t on_host = 0, on_device = 0;
    const auto wanted = round_trip(&host, &on_host);
    EXPECT_EQ(round_trip(&gpu, &on_device), wanted);
    EXPECT_EQ(on_device, on_host);
  }

  CudaDevice* device_ = nullptr;
  std::unique_ptr<CodecKernels> kernels_;
};

TEST_F(EmulatedStashTest, CodesOfFewBits) {
  for (const uint32_t bits : {2u, 4u, 8u}) ExpectTwins(CodesOf(bits));
}

TEST_F(EmulatedStashTest, TensorsAndPayloadsWaitOnTheHostAndOnDisk) {
  SwapFileOptions options;
  options.folder = ::testing::TempDir();
  for (const CodecSpec& codec : {CodecSpec(), CodesOf(8)}) {
    ExpectSwappedTheSame(device_, kernels_.get(), codec, NewHostPlace());
    ExpectSwappedTheSame(device_, kernels_.get(), codec, *NewFilePlace(device_, options));
  }
}

TEST_F(EmulatedStashTest, CodesBehindALosslessStage) {
  CodecSpec codec = CodesOf(4);
  codec.lossless = Lossless::kEntropy;
  ExpectTwins(codec);
  ExpectTwins([] {
    CodecSpec exact;
    exact.lossless = Lossless::kEntropy;
    return exact;
  }());
}

TEST_F(EmulatedStashTest, PayloadsStayOnTheDevice) {
  TestedStash gpu(device_, kernels_.get(), CodesOf(4));
  const size_t before = device_->bytes_in_use();
  Tensor x = gpu.Numbers({8, 128, 64});
  const size_t bytes = x.bytes();
  EXPECT_EQ(device_->bytes_in_use(), before + bytes);
  std::vector<KeptTensor> tensors;
  tensors.push_back({std::move(x)});
  const auto stashed = *gpu.stash->Put("block", Pass(Mode::kTrain), std::move(tensors));
  EXPECT_GT(device_->bytes_in_use(), before);
  EXPECT_LE(6 * (device_->bytes_in_use() - before), bytes);
}

}  // namespace
}  // namespace thinwire
