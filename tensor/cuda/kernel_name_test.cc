#include "tensor/cuda/kernel_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

TEST(KernelNameTest, IsTheKernelsOwnWithItsTemplateArguments) {
  // void thinwire::(anonymous namespace)::Softmax<float>(float const*)
  EXPECT_EQ(ShortKernelName("_ZN8thinwire12_GLOBAL__N_17SoftmaxIfEEvPKT_"), "Softmax<float>");
  EXPECT_EQ(ShortKernelName("_Z11AddUpLossesPfi"), "AddUpLosses");
  // void a::Kernel<b::Tile<4>, (c::Kind)1>(int)
  EXPECT_EQ(ShortKernelName("_ZN1a6KernelIN1b4TileILi4EEELN1c4KindE1EEEvi"),
            "Kernel<Tile<4>, (Kind)1>");
}

TEST(KernelNameTest, LeavesWhatIsNoNameOfCpp) {
  EXPECT_EQ(ShortKernelName("sm90_xmma_fprop_implicit_gemm"), "sm90_xmma_fprop_implicit_gemm");
  EXPECT_EQ(ShortKernelName(""), "");
}

TEST(KernelNameTest, CutsWhatIsLong) {
  const std::string name = ShortKernelName(std::string(500, 'k').c_str());
  EXPECT_EQ(name.size(), 80u);
  EXPECT_THAT(name, testing::EndsWith("kk..."));
}

}  // namespace
}  // namespace thinwire
