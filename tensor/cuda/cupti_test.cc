#include "tensor/cuda/cupti.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
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

class CuptiOpenTest : public ::testing::Test {
 protected:
  // Paths in folders of their own.
  std::string Path(const std::string& folder) {
    const std::string made = testing::TempDir() + "/" + folder;
    mkdir(made.c_str(), 0700);
    return made + "/libcupti.so.13";
  }
  std::string NoLibrary() {
    const std::string path = Path("text");
    std::ofstream(path) << "no library";
    return path;
  }
  std::string OtherLibrary() {
    const std::string path = Path("other");
    Dl_info libc;
    EXPECT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &libc), 0);
    (void)unlink(path.c_str());
    EXPECT_EQ(symlink(libc.dli_fname, path.c_str()), 0);
    return path;
  }

  const std::string fake_ = "tensor/cuda/fake_cupti/libcupti.so.13";
  std::string why_ = "before";
};

TEST_F(CuptiOpenTest, WhatDoesNotLoadOrLacksAFunctionIsPassedOver) {
  static Cupti* found = nullptr;  // lives as long as the process
  found = Cupti::OpenFirst({Path("empty"), NoLibrary(), OtherLibrary(), fake_}, &why_);
  EXPECT_NE(found, nullptr);
}

TEST_F(CuptiOpenTest, SaysWhatKeepsTheFirstThatIsThereFromUse) {
  EXPECT_EQ(Cupti::OpenFirst({Path("empty"), NoLibrary(), OtherLibrary()}, &why_), nullptr);
  EXPECT_EQ(why_, NoLibrary() + ": file too short");
  EXPECT_EQ(Cupti::OpenFirst({OtherLibrary(), NoLibrary()}, &why_), nullptr);
  EXPECT_THAT(why_, testing::StartsWith(OtherLibrary() + ": has no cupti"));
}

TEST_F(CuptiOpenTest, SaysNothingOfWhatIsNotThere) {
  EXPECT_EQ(Cupti::OpenFirst({Path("empty"), "libcupti_of_nobody.so.13"}, &why_), nullptr);
  EXPECT_EQ(why_, "");
}

}  // namespace
}  // namespace thinwire
