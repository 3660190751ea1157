#include "stage_server/stage/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "nn/coded_parameter.h"
#include "nn/weight_codes.h"
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

std::string Written(const std::vector<const Parameter*>& parameters) {
  std::string file;
  const absl::Status status = WriteParameters(parameters, 1000, [&](std::string_view piece) {
    file += piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return file;
}

Parameter Of(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  Parameter parameter;
  parameter.spec.name = name;
  parameter.spec.shape = shape;
  parameter.value = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  std::copy(values.begin(), values.end(), parameter.value.floats().begin());
  return parameter;
}

// Returns a parameter that also has memory for its gradient.
Parameter Trained(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  Parameter parameter = Of(name, shape, values);
  parameter.gradient = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  return parameter;
}

absl::Status Read(std::string_view file, const std::vector<const Parameter*>& parameters,
                  size_t piece_bytes = 3) {
  ParameterReader reader(parameters);
  for (; !file.empty(); file.remove_prefix(std::min(piece_bytes, file.size()))) {
    const absl::Status status = reader.Append(file.substr(0, piece_bytes));
    if (!status.ok()) return status;
  }
  return reader.Finish();
}

// Returns a file of `tensors` with their values as they are.
std::string FileOf(const std::vector<StoredTensor>& tensors) {
  std::string file;
  const auto sink = [&](std::string_view piece) {
    file += piece;
    return absl::OkStatus();
  };
  EXPECT_TRUE(WriteSafetensors({{}, tensors}, 1000, sink).ok());
  return file;
}

class ReadParametersTest : public ::testing::Test {
 protected:
  ReadParametersTest()
      : weight_(Trained("fc.weight", {2, 1}, {1.5f, -2.0f})), bias_(Of("fc.bias", {1}, {7})) {}

  // Returns the error of reading into both parameters, neither of which may have changed.
  std::string ErrorOf(const std::string& file) {
    const std::string before = Written({&weight_, &bias_});
    const absl::Status status = Read(file, {&weight_, &bias_});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Written({&weight_, &bias_}), before);
    return std::string(status.message());
  }

  Parameter weight_, bias_;
};

TEST_F(ReadParametersTest, WhatWasWrittenComesBackWhateverTheOrderAndThePieces) {
  const std::string file = Written({&bias_, &weight_});
  const std::string before = Written({&weight_, &bias_});
  for (const size_t piece_bytes : {size_t{1}, size_t{7}, file.size()}) {
    weight_.value.floats()[1] = bias_.value.floats()[0] = 3;
    const absl::Status status = Read(file, {&weight_, &bias_}, piece_bytes);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Written({&weight_, &bias_}), before);
  }
}

TEST_F(ReadParametersTest, AFileCutShortAtAnyByteChangesNothing) {
  const Parameter weight = Of("fc.weight", {2, 1}, {8, 9}), bias = Of("fc.bias", {1}, {10});
  const std::string file = Written({&weight, &bias});
  for (size_t size = 0; size < file.size(); ++size) ErrorOf(file.substr(0, size));
  EXPECT_EQ(ErrorOf(file.substr(0, file.size() - 3)),
            "safetensors: the file ends 3 bytes before the end of its tensor fc.bias");
  EXPECT_EQ(ErrorOf(file + "x"), "safetensors: 1 bytes behind the last tensor");
}

TEST_F(ReadParametersTest, AFrozenParameterIsOverwrittenAsItComes) {
  const Parameter scale = Of("fc.scale", {2}, {8, 9});
  const std::string file = Written({&scale, &weight_});
  Parameter frozen = Of("fc.scale", {2}, {1, 2});
  frozen.spec.role = ParameterSpec::Role::kFrozen;
  weight_.value.floats()[0] = 5;
  EXPECT_FALSE(Read(file.substr(0, file.size() - 1), {&frozen, &weight_}).ok());
  EXPECT_EQ(frozen.value.floats()[1], 9);
  EXPECT_EQ(weight_.value.floats()[0], 5);
  frozen.value.floats()[1] = 3;
  ASSERT_TRUE(Read(file, {&frozen, &weight_}).ok());
  EXPECT_EQ(frozen.value.floats()[1], 9);
  EXPECT_EQ(weight_.value.floats()[0], 1.5f);
}

// Returns a frozen weight of two parts in files that is held in few bits, with undefined values.
Parameter Held(WeightFormat format) {
  Parameter weight;
  weight.spec.name = "qv.weight";
  weight.spec.shape = {3, 64};
  weight.spec.parts = {{"q.weight", 2}, {"v.weight", 1}};
  weight.spec.role = ParameterSpec::Role::kFrozen;
  weight.spec.format = format;
  EXPECT_TRUE(AllocateCodes(&weight, CpuDevice()).ok());
  return weight;
}

TEST_F(ReadParametersTest, AWeightInFewBitsIsQuantisedAsItComesAndWrittenAsWhatItStandsFor) {
  std::vector<float> q(2 * 64), v(64);
  for (size_t i = 0; i < q.size(); ++i) q[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::cos(static_cast<float>(i)) / 8;
  const Parameter in_file_q = Of("q.weight", {2, 64}, q), in_file_v = Of("v.weight", {1, 64}, v);
  const std::string file = Written({&in_file_v, &in_file_q});
  std::vector<float> all = q;
  all.insert(all.end(), v.begin(), v.end());
  for (const WeightFormat format : {WeightFormat::kBF16, WeightFormat::kInt8, WeightFormat::kNF4}) {
    const Parameter weight = Held(format);
    ASSERT_TRUE(Read(file, {&weight}).ok());
    std::vector<float> want(all.size()), got(all.size());
    Expand(format, 64, *Quantized(format, 64, all), absl::MakeSpan(want));
    ASSERT_TRUE(ReadRows(weight, 0, absl::MakeSpan(got)).ok());
    EXPECT_EQ(got, want);
    const std::string written = Written({&weight});
    EXPECT_EQ(written.size(), ParameterFileBytes({&weight}));
    const Parameter again = Held(format);
    ASSERT_TRUE(Read(written, {&again}).ok());
    ASSERT_TRUE(ReadRows(again, 0, absl::MakeSpan(got)).ok());
    EXPECT_EQ(got, want);
  }
}

TEST_F(ReadParametersTest, AWeightInFewBitsThatIsNotFiniteIsNamed) {
  std::vector<float> q(2 * 64);
  q[3] = HUGE_VALF;
  const Parameter in_file_q = Of("q.weight", {2, 64}, q);
  const Parameter in_file_v = Of("v.weight", {1, 64}, std::vector<float>(64));
  const Parameter weight = Held(WeightFormat::kNF4);
  const absl::Status status = Read(Written({&in_file_q, &in_file_v}), {&weight});
  EXPECT_EQ(status.message(), "parameter qv.weight: element 3 is inf, want finite numbers");
}

TEST_F(ReadParametersTest, AHeaderThatLiesChangesNothing) {
  EXPECT_EQ(ErrorOf(std::string("\0\0\0\0\0\0\0\1", 8) + "{}"),
            "parameters of more than 16777228 bytes, this stage's and a header of 16 MiB");
  EXPECT_EQ(ErrorOf(std::string("\2\0\0\0\0\0\0\0[]", 10)),
            "safetensors: the header is no JSON map");
}

TEST_F(ReadParametersTest, ATiedCopyIsReadFromItsOriginalAndNotWritten) {
  Parameter copy = Of("head.weight", {2, 1}, {1.5f, -2.0f});
  copy.spec.tied_to = "fc.weight";
  const std::string file = Written({&weight_, &bias_, &copy});
  EXPECT_EQ(file, Written({&weight_, &bias_}));
  weight_.value.floats()[1] = copy.value.floats()[1] = 3;
  const absl::Status both = Read(file, {&weight_, &bias_, &copy});
  ASSERT_TRUE(both.ok()) << both;
  EXPECT_EQ(weight_.value.floats()[1], -2.0f);
  EXPECT_EQ(copy.value.floats()[1], -2.0f);
  const absl::Status alone = Read(Written({&weight_}), {&copy});
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

TEST_F(ReadParametersTest, AnotherTypeIsNamedWithThoseThatAreRead) {
  EXPECT_EQ(
      ErrorOf(FileOf({{"fc.weight", "F32", {2, 1}, "abcdefgh"}, {"fc.bias", "I32", {1}, "abcd"}})),
      "parameter fc.bias: I32 [1], want F32, F16 or BF16 [1]");
}

TEST_F(ReadParametersTest, HalfTypesAreWidened) {
  // In fp16: 1.5, -2^-24 (the smallest), infinity and 2^-14 (the smallest normal number); in bf16:
  // 1.5.
  Parameter four = Trained("fc.weight", {4, 1}, {0, 0, 0, 0});
  const std::string halves("\x00\x3e\x01\x80\x00\x7c\x00\x04", 8), bf16("\xc0\x3f", 2);
  const absl::Status status =
      Read(FileOf({{"fc.weight", "F16", {4, 1}, halves}, {"fc.bias", "BF16", {1}, bf16}}),
           {&four, &bias_});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(four.value.floats()[0], 1.5f);
  EXPECT_EQ(four.value.floats()[1], -0x1p-24f);
  EXPECT_EQ(four.value.floats()[2], HUGE_VALF);
  EXPECT_EQ(four.value.floats()[3], 0x1p-14f);
  EXPECT_EQ(bias_.value.floats()[0], 1.5f);
}

TEST_F(ReadParametersTest, TransposedAndInPartsAsTheSpecSays) {
  Parameter conv1d = Trained("c_attn.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  conv1d.spec.transposed = true;
  Parameter fused = Trained("qkv.weight", {3, 1}, {7, 8, 9});
  fused.spec.parts = {{"q_proj.weight", 2}, {"v_proj.weight", 1}};
  const std::string file = Written({&conv1d, &fused});
  const Safetensors parsed = *ParseSafetensors(file);
  ASSERT_EQ(parsed.tensors.size(), 3u);
  EXPECT_EQ(parsed.tensors[0].shape, std::vector<int64_t>({2, 3}));
  const float in_file[6] = {1, 3, 5, 2, 4, 6};
  EXPECT_EQ(std::memcmp(parsed.tensors[0].data.data(), in_file, sizeof(in_file)), 0);
  EXPECT_EQ(parsed.tensors[1].name, "q_proj.weight");
  EXPECT_EQ(parsed.tensors[2].name, "v_proj.weight");
  for (Parameter* one : {&conv1d, &fused}) {
    for (float& value : one->value.floats()) value = 0;
  }
  const absl::Status status = Read(file, {&conv1d, &fused});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Written({&conv1d, &fused}), file);
  EXPECT_EQ(conv1d.value.floats()[1], 2.0f);
}

TEST_F(ReadParametersTest, ATiedCopyIsReadFromTheOneTensorWhetherOrNotTheOtherIsHere) {
  const Parameter embedding = Trained("wte.weight", {2, 1}, {3, 4});
  Parameter head = Trained("lm_head.weight", {2, 1}, {0, 0});
  head.spec.tied_to = "wte.weight";
  const std::string file = Written({&embedding, &head});
  EXPECT_EQ(ParseSafetensors(file)->tensors.size(), 1u);
  ASSERT_TRUE(Read(file, {&head}).ok());
  EXPECT_EQ(head.value.floats()[1], 4.0f);
  head.value.floats()[1] = embedding.value.floats()[1] = 0;
  ASSERT_TRUE(Read(file, {&embedding, &head}).ok());
  EXPECT_EQ(head.value.floats()[1], 4.0f);
  EXPECT_EQ(embedding.value.floats()[1], 4.0f);
}

TEST_F(ReadParametersTest, AnotherShapeIsNamedWithBoth) {
  const Parameter wide = Of("fc.bias", {2}, {1, 2});
  EXPECT_EQ(ErrorOf(Written({&weight_, &wide})), "parameter fc.bias: F32 [2], want F32 [1]");
}

}  // namespace
}  // namespace thinwire
