#include "stage_server/stage/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

TEST(SafetensorsTest, HeaderAndDataAreWhereTheFormatWantsThem) {
  Parameter weight;
  weight.spec.name = "fc.weight";
  weight.spec.shape = {2, 1};
  weight.value = *Tensor::Allocate(CpuDevice(), DType::kF32, {2, 1});
  weight.value.floats()[0] = 1.5f;
  weight.value.floats()[1] = -2.0f;
  Parameter bias;
  bias.spec.name = "fc.bias";
  bias.spec.shape = {1};
  bias.value = *Tensor::Allocate(CpuDevice(), DType::kF32, {1});
  bias.value.floats()[0] = 7.0f;

  std::string file;
  size_t longest = 0;
  ASSERT_TRUE(WriteParameters({&weight, &bias}, /*piece_bytes=*/5, [&](std::string_view piece) {
                longest = std::max(longest, piece.size());
                file += piece;
                return absl::OkStatus();
              }).ok());

  EXPECT_EQ(longest, 5u);
  const auto header_bytes = static_cast<uint8_t>(file[0]) + 256u * static_cast<uint8_t>(file[1]);
  EXPECT_EQ(header_bytes % 8, 0u);
  const auto header = nlohmann::json::parse(file.substr(8, header_bytes));
  EXPECT_EQ(header["fc.weight"]["dtype"], "F32");
  EXPECT_EQ(header["fc.weight"]["shape"], nlohmann::json({2, 1}));
  EXPECT_EQ(header["fc.bias"]["data_offsets"], nlohmann::json({8, 12}));
  ASSERT_EQ(file.size(), 8 + header_bytes + 12);
  float values[3];
  std::memcpy(values, file.data() + 8 + header_bytes, sizeof(values));
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[2], 7.0f);
}

TEST(SafetensorsTest, TheSinksErrorEndsTheFile) {
  int calls = 0;
  const absl::Status status = WriteParameters({}, 4, [&](std::string_view) {
    ++calls;
    return absl::CancelledError("enough");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 1);
}

class ReadParametersTest : public ::testing::Test {
 protected:
  ReadParametersTest()
      : weight_(Of("fc.weight", {2, 1}, {1.5f, -2.0f})), bias_(Of("fc.bias", {1}, {7})) {}

  static Parameter Of(const std::string& name, const Shape& shape,
                      const std::vector<float>& values) {
    Parameter parameter;
    parameter.spec.name = name;
    parameter.spec.shape = shape;
    parameter.value = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
    std::copy(values.begin(), values.end(), parameter.value.floats().begin());
    return parameter;
  }
  static std::string Written(const std::vector<const Parameter*>& parameters) {
    std::string file;
    const absl::Status status = WriteParameters(parameters, 1000, [&](std::string_view piece) {
      file += piece;
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return file;
  }
  // The error of reading into both parameters, which must have changed neither.
  std::string ErrorOf(const std::string& file) {
    const std::string before = Written({&weight_, &bias_});
    const absl::Status status = ReadParameters(file, {&weight_, &bias_});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Written({&weight_, &bias_}), before);
    return std::string(status.message());
  }

  Parameter weight_, bias_;
};

TEST_F(ReadParametersTest, WhatWasWrittenComesBackWhateverTheOrder) {
  const std::string file = Written({&bias_, &weight_});
  const std::string before = Written({&weight_, &bias_});
  weight_.value.floats()[1] = bias_.value.floats()[0] = 3;
  const absl::Status status = ReadParameters(file, {&weight_, &bias_});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Written({&weight_, &bias_}), before);
}

TEST_F(ReadParametersTest, ATiedCopyIsReadFromItsOriginalAndNotWritten) {
  Parameter copy = Of("head.weight", {2, 1}, {1.5f, -2.0f});
  copy.spec.tied_to = "fc.weight";
  const std::string file = Written({&weight_, &bias_, &copy});
  EXPECT_EQ(file, Written({&weight_, &bias_}));
  weight_.value.floats()[1] = copy.value.floats()[1] = 3;
  const absl::Status both = ReadParameters(file, {&weight_, &bias_, &copy});
  ASSERT_TRUE(both.ok()) << both;
  EXPECT_EQ(weight_.value.floats()[1], -2.0f);
  EXPECT_EQ(copy.value.floats()[1], -2.0f);
  const absl::Status alone = ReadParameters(Written({&weight_}), {&copy});
  EXPECT_TRUE(alone.ok()) << alone;
}

TEST_F(ReadParametersTest, AMissingTensorIsNamed) {
  EXPECT_EQ(ErrorOf(Written({&weight_})), "parameter fc.bias is missing");
}

TEST_F(ReadParametersTest, ATensorLeftOverIsNamed) {
  const Parameter scale = Of("fc.scale", {1}, {1});
  EXPECT_EQ(ErrorOf(Written({&weight_, &bias_, &scale})),
            "tensor fc.scale is no parameter of this stage");
}

TEST_F(ReadParametersTest, AnotherShapeIsNamedWithBoth) {
  const Parameter wide = Of("fc.bias", {2}, {1, 2});
  EXPECT_EQ(ErrorOf(Written({&weight_, &wide})), "parameter fc.bias: F32 [2], want F32 [1]");
}

}  // namespace
}  // namespace thinwire
