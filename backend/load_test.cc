#include "backend/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "backend/build_id.h"
#include "compress/cpu/kernels.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(LoadBackendTest, GivesTheSamePluginEachTime) {
  const auto first = LoadBackend("backend/libtwo.so");
  ASSERT_TRUE(first.ok()) << first.status();
  int count = 0;
  EXPECT_TRUE((*first)->CountDevices(&count).ok());
  EXPECT_EQ(count, 2);
  EXPECT_EQ(*LoadBackend("backend/libtwo.so"), *first);
}

TEST(LoadBackendTest, NamesAMissingFile) {
  const auto plugin = LoadBackend("backend/libabsent.so");
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(plugin.status()), HasSubstr("/backend/libabsent.so: no such file"));
}

TEST(LoadBackendTest, NamesAFileThatIsNoLibrary) {
  const std::string path = testing::TempDir() + "/no_library.so";
  std::ofstream(path) << "thinwire";
  const auto plugin = LoadBackend(path);
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(plugin.status()), AllOf(HasSubstr(path), HasSubstr("file too short")));
}

TEST(LoadBackendTest, NamesTheSymbolThatALibraryLacks) {
  const auto plugin = LoadBackend("backend/libwithout_entry.so");
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(plugin.status()), HasSubstr("has no symbol thinwire_backend"));
}

TEST(LoadBackendTest, NamesBothBuildsWhenTheyDiffer) {
  const auto plugin = LoadBackend("backend/libother_build.so");
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(plugin.status()),
              HasSubstr(std::string("libother_build.so: is of build 0123456789ab gcc 1.0 opt, "
                                    "interface 00, this program of build ") +
                        BackendBuildId()));
}

TEST(BuildIdTest, NamesTheInterface) {
  EXPECT_THAT(BackendBuildId(), testing::MatchesRegex(".+, interface [0-9a-f]{16}"));
}

TEST(DefaultBackendPathsTest, BesideTheProgramThenInItsLibThenInTheBazelTree) {
  const auto paths = DefaultBackendPaths();
  ASSERT_EQ(paths.size(), 3u);  // this test runs in a Bazel tree
  EXPECT_THAT(paths[0], testing::EndsWith("/bin/backend/libthinwire_cuda.so"));
  EXPECT_THAT(paths[1], testing::EndsWith("/bin/backend/lib/libthinwire_cuda.so"));
  EXPECT_THAT(paths[2], testing::EndsWith("/bin/backend/cuda/libthinwire_cuda.so"));
}

TEST(OpenDeviceTest, TheCpuNeedsNoBackend) {
  const auto opened = OpenDevice("cpu", "backend/libabsent.so");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->device, CpuDevice());
  EXPECT_EQ(opened->kernels, CpuCodecKernels());
  EXPECT_EQ(opened->plugin, nullptr);
  EXPECT_EQ(opened->note, "");
}

TEST(OpenDeviceTest, AutoWithoutABackendIsTheCpuWithTheReason) {
  for (const auto& [path, reason] :
       {std::pair("backend/libabsent.so", "libabsent.so: no such file"),
        std::pair("backend/libother_build.so", "libother_build.so: is of build 0123456789ab"),
        std::pair("backend/libno_driver.so", "no NVIDIA driver was found"),
        std::pair("backend/libnone.so", "there is no CUDA device")}) {
    const auto opened = OpenDevice("auto", path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->device, CpuDevice());
    EXPECT_EQ(opened->plugin, nullptr);
    EXPECT_THAT(opened->note, AllOf(HasSubstr("device auto: CPU, because "), HasSubstr(reason)));
  }
}

TEST(OpenDeviceTest, WhereNoBackendIsInstalledAutoSaysSoWithoutPathsAndCudaWithThem) {
  // Uses no DefaultBackendPaths(), because the Bazel tree may hold a backend, of this build or an
  // earlier one.
  const std::vector<std::string> paths = {"/absent/libthinwire_cuda.so", "/absent/lib/two.so"};
  EXPECT_EQ(OpenDevice("auto", "", paths)->note,
            "device auto: CPU, because libthinwire_cuda.so is not installed");
  EXPECT_EQ(OpenDevice("cuda", "", paths).status(),
            absl::NotFoundError("device cuda:0: libthinwire_cuda.so is at none of "
                                "/absent/libthinwire_cuda.so, /absent/lib/two.so"));
}

TEST(OpenDeviceTest, CudaWithoutADriverIsAnError) {
  const auto opened = OpenDevice("cuda", "backend/libno_driver.so");
  EXPECT_EQ(opened.status(), absl::UnavailableError("device cuda:0: no NVIDIA driver was found"));
}

TEST(OpenDeviceTest, CudaWithoutABackendNamesWhereItWasLookedFor) {
  const auto opened = OpenDevice("cuda:1", "backend/libabsent.so");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(opened.status()),
              AllOf(HasSubstr("device cuda:1: "), HasSubstr("/backend/libabsent.so")));
}

TEST(OpenDeviceTest, ADeviceThatDoesNotOpenIsNotReplacedByTheCpu) {
  const auto opened = OpenDevice("auto", "backend/libtwo.so");
  EXPECT_EQ(opened.status(), absl::UnavailableError("the fake does not open"));
}

TEST(OpenDeviceTest, RefusesWhatIsNoDevice) {
  EXPECT_EQ(OpenDevice("gpu", "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      OpenDevice("cuda:2", "backend/libtwo.so").status(),
      absl::InvalidArgumentError("device cuda:2: there are 2 CUDA devices, cuda:0 to cuda:1"));
}

}  // namespace
}  // namespace thinwire
