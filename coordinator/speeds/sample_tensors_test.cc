#include "coordinator/speeds/sample_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "base/safetensors.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes a file with one tensor of eight bytes.
std::string FileWith(const std::string& name, const std::string& dtype,
                     const std::vector<int64_t>& shape) {
  const std::string path = ::testing::TempDir() + "/sample.safetensors";
  const std::string data("\0\0\x80\x3F\0\0\0\xC0", 8);  // 1 and -2 in fp32
  Safetensors file;
  file.tensors.push_back({name, dtype, shape, data});
  std::ofstream out(path, std::ios::binary);
  const absl::Status written = WriteSafetensors(file, 1 << 20, [&](std::string_view piece) {
    out << piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(written.ok()) << written;
  return path;
}

std::string ErrorOf(const std::string& path) {
  return std::string(ReadSampleTensors({path}).status().message());
}

TEST(ReadSampleTensorsTest, ReadsWhatACaptureHolds) {
  const auto tensors = ReadSampleTensors({FileWith("layer1/gradient/step1", "F32", {1, 2})});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_EQ((*tensors)[0].name, "layer1/gradient/step1");
  EXPECT_EQ((*tensors)[0].group, "gradient");
  EXPECT_EQ((*tensors)[0].x.shape(), (Shape{1, 2}));
  EXPECT_THAT((*tensors)[0].x.floats(), ElementsAre(1, -2));
}

TEST(ReadSampleTensorsTest, BFloatStaysBFloat) {
  const auto tensors = ReadSampleTensors({FileWith("layer1/activation/step1", "BF16", {2, 2})});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ((*tensors)[0].group, "activation");
  EXPECT_EQ((*tensors)[0].x.dtype(), DType::kBF16);
}

TEST(ReadSampleTensorsTest, OtherNamesAreTensors) {
  EXPECT_EQ((*ReadSampleTensors({FileWith("conv1.weight", "F32", {2})}))[0].group, "tensor");
}

TEST(ReadSampleTensorsTest, RefusalsNameFileAndTensor) {
  EXPECT_THAT(ErrorOf(FileWith("labels", "I64", {1})),
              HasSubstr("sample.safetensors: tensor labels is I64, want F32 or BF16"));
  EXPECT_THAT(ErrorOf(FileWith("deep", "F32", {1, 1, 1, 1, 1, 1, 2})),
              HasSubstr("tensor deep has 7 axes, want 1 to 6"));
  EXPECT_THAT(ErrorOf("no/such.safetensors"), HasSubstr("no/such.safetensors: cannot open"));
  const std::string path = ::testing::TempDir() + "/broken.safetensors";
  std::ofstream(path) << "broken";
  EXPECT_THAT(ErrorOf(path), HasSubstr("broken.safetensors: "));
  EXPECT_THAT(ErrorOf("/"), HasSubstr("/: cannot read: Is a directory"));
}

TEST(CaptureSampleTensorsTest, WithoutATemporaryFolderItIsAnErrorThatNamesIt) {
  setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  Interruption interruption;
  EXPECT_THAT(std::string(CaptureSampleTensors(SessionOptions(), &interruption).status().message()),
              HasSubstr("/nonexistent/thinwire-codecs-"));
}

}  // namespace
}  // namespace thinwire
