#include "stage_server/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

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

}  // namespace
}  // namespace thinwire
