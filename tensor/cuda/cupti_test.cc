#include "tensor/cuda/cupti.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(CuptiPathsTest, AreThoseOfWheelsBundlesAndToolkits) {
  const std::vector<std::string> paths =
      CuptiPaths({"/opt/thinwire", "/wheels/nvidia/cudnn/lib::/usr/local/cuda/lib64", "/cuda"});
  for (const char* const want :
       {"/wheels/nvidia/cudnn/lib/libcupti.so.13",
        "/wheels/nvidia/cudnn/lib/../../cu13/lib/libcupti.so.13",
        "/wheels/nvidia/cudnn/lib/../../cuda_cupti/lib/libcupti.so.13",
        "/usr/local/cuda/lib64/../extras/CUPTI/lib64/libcupti.so.13",
        "/opt/thinwire/libcupti.so.13", "/opt/thinwire/lib/libcupti.so.13",
        "/cuda/lib64/libcupti.so.13", "/cuda/extras/CUPTI/lib64/libcupti.so.13"}) {
    EXPECT_THAT(paths, testing::Contains(want));
  }
  EXPECT_EQ(paths.back(), "libcupti.so.13");
}

}  // namespace
}  // namespace thinwire
