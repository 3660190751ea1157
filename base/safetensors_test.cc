#include "base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

std::string Written(const Safetensors& file, size_t piece_bytes = 7) {
  std::string bytes;
  const absl::Status status = WriteSafetensors(file, piece_bytes, [&](std::string_view piece) {
    EXPECT_THAT(piece, SizeIs(Le(piece_bytes)));
    bytes += piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

Safetensors Two() {
  return {{{"step", "7"}},
          {{"fc.weight", "F32", {1, 2}, "abcdefgh"}, {"fc.scale", "BF16", {}, "ij"}}};
}

std::string File(const std::string& header, const std::string& data) {
  return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + data;
}

std::string ErrorOf(const std::string& file) {
  const auto parsed = ParseSafetensors(file);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kDataLoss);
  return std::string(parsed.status().message());
}

TEST(SafetensorsTest, WhatIsWrittenIsRead) {
  const std::string file = Written(Two());
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->metadata.at("step"), "7");
  EXPECT_EQ(parsed->metadata.at("format"), "pt");
  ASSERT_THAT(parsed->tensors, SizeIs(2));
  EXPECT_EQ(parsed->tensors[0].name, "fc.weight");
  EXPECT_THAT(parsed->tensors[0].shape, ElementsAre(1, 2));
  EXPECT_EQ(parsed->tensors[0].data, "abcdefgh");
  EXPECT_EQ(parsed->tensors[1].dtype, "BF16");
  EXPECT_EQ(parsed->tensors[1].data, "ij");
}

TEST(SafetensorsTest, DataBeginsAtAMultipleOfEight) {
  EXPECT_EQ((Written(Two()).size() - 10) % 8, 0u);
}

TEST(SafetensorsTest, AFileCutShortIsRefusedAtEachByte) {
  const std::string file = Written(Two());
  for (size_t size = 0; size < file.size(); ++size) ErrorOf(file.substr(0, size));
}

TEST(SafetensorsTest, BytesLeftOverAreRefused) {
  EXPECT_THAT(ErrorOf(Written(Two()) + "x"), HasSubstr("11 bytes of data, its tensors have 10"));
}

TEST(SafetensorsTest, AShapeThatIsNotItsBytesIsRefused) {
  EXPECT_THAT(ErrorOf(File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd")),
              HasSubstr("tensor a: bytes 0 to 4 of 4, its shape wants 8"));
}

TEST(SafetensorsTest, AShapeBeyondAllNumbersIsRefused) {
  ErrorOf(
      File(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""));
}

TEST(SafetensorsTest, TensorsThatOverlapAreRefused) {
  EXPECT_THAT(ErrorOf(File(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                           R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                           "abc")),
              HasSubstr("tensor b begins at byte 1, want 2"));
}

TEST(SafetensorsTest, AHeaderMayHoldManyTensors) {
  Safetensors many;
  for (int i = 0; i < 60'000; ++i) {
    many.tensors.push_back({"t" + std::to_string(i), "U8", {0}, ""});
  }
  const std::string file = Written(many, size_t{1} << 20);
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->tensors, SizeIs(60'000));
}

TEST(SafetensorsTest, TheOrderIsThatOfTheDataAndNotThatOfTheNames) {
  const std::string file = Written({{}, {{"b", "U8", {1}, "x"}, {"a", "U8", {1}, "y"}}});
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_THAT(parsed->tensors, SizeIs(2));
  EXPECT_EQ(parsed->tensors[0].name, "b");
  EXPECT_EQ(parsed->tensors[1].data, "y");
}

TEST(SafetensorsTest, ANameThatStandsTwiceIsRefused) {
  EXPECT_THAT(ErrorOf(File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                           "xy")),
              HasSubstr("tensor a begins at byte 1, want 0"));
}

TEST(SafetensorsTest, AnUnknownTypeIsNamed) {
  EXPECT_THAT(ErrorOf(File(R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,1]}})", "a")),
              HasSubstr("unknown dtype F3"));
}

}  // namespace
}  // namespace thinwire
