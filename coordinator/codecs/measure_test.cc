#include "coordinator/codecs/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"
#include "compress/spec_text.h"
#include "nlohmann/json.hpp"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

SampleTensor Sample(const std::string& group, const Shape& shape) {
  SampleTensor sample{group + "/1", group, *Tensor::Allocate(CpuDevice(), DType::kF32, shape)};
  RandomStream random(RandomKey(1, group));
  for (float& value : sample.x.floats()) value = random.NextFloat() - 0.5f;
  return sample;
}

Measurements Measured(const std::vector<std::string>& texts,
                      const std::vector<SampleTensor>& tensors, MeasureOptions options = {}) {
  options.rounds = std::min(options.rounds, 3);
  std::vector<CodecSpec> specs;
  for (const std::string& text : texts) specs.push_back(*ParseCodec(text));
  const auto measured = MeasureCodecs(specs, tensors, options);
  EXPECT_TRUE(measured.ok()) << measured.status();
  return measured.ok() ? *measured : Measurements();
}

TEST(CodecMeasureTest, BitsAndErrorsAreThoseOfTheCodec) {
  const Measurements m = Measured({"none", "uniform(bits=8)", "topk(ratio=0.1, scope=tensor)"},
                                  {Sample("gradient", {64, 8, 8, 16})});
  ASSERT_EQ(m.rows.size(), 3u);
  EXPECT_NEAR(m.rows[0].wire_bits_per_element, 32, 0.05);
  EXPECT_EQ(m.rows[0].relative_error, 0);
  EXPECT_EQ(m.rows[0].cosine, 1);
  EXPECT_NEAR(m.rows[1].wire_bits_per_element, 8, 0.05);
  // Codes are 1/255 apart, so errors are uniform in half of that: sd (1/255) / sqrt(12) of
  // values with sd 1 / sqrt(12).
  EXPECT_NEAR(m.rows[1].relative_error, 1 / 255.0, 0.05 / 255);
  EXPECT_NEAR(m.rows[2].wire_bits_per_element, 0.1 * (32 + 4.8), 0.1);
  EXPECT_THAT(m.rows[2].cosine, AllOf(Gt(0.3), Lt(0.9)));
}

TEST(CodecMeasureTest, BreakEvenIsBytesSavedOverCodecTime) {
  const CodecMeasurement row =
      Measured({"fp16"}, {Sample("gradient", {64, 8, 8, 16})}).rows.front();
  const double bytes = 4.0 * 64 * 8 * 8 * 16;
  const double saved = bytes * (1 - row.wire_bits_per_element / 32);
  const double seconds = bytes / row.encode_bytes_per_second + bytes / row.decode_bytes_per_second;
  EXPECT_NEAR(row.break_even_bits_per_second, 8 * saved / seconds,
              1e-6 * row.break_even_bits_per_second);
  EXPECT_GT(row.encode_of_memcpy, 0);
}

TEST(CodecMeasureTest, NothingSavedHasNoBreakEven) {
  EXPECT_EQ(Measured({"none"}, {Sample("gradient", {4, 4})}).rows[0].break_even_bits_per_second, 0);
}

TEST(CodecMeasureTest, TensorsOfAGroupShareARow) {
  const Measurements m = Measured(
      {"fp16", "bf16"},
      {Sample("activation", {8, 8}), Sample("gradient", {8, 8}), Sample("activation", {3, 8})});
  ASSERT_EQ(m.rows.size(), 4u);
  EXPECT_EQ(m.rows[0].group, "activation");
  EXPECT_EQ(m.rows[3].group, "gradient");
  EXPECT_EQ(m.rows[3].codec, "bf16");
}

TEST(CodecMeasureTest, ARefusalIsSaidInItsRow) {
  const Measurements m =
      Measured({"low_rank(rank=4)", "topk(indices=shared)", "none"}, {Sample("gradient", {64, 3})});
  EXPECT_THAT(m.rows[0].refused, HasSubstr("rank 4 of a matrix of 64 x 3"));
  EXPECT_THAT(m.rows[1].refused, HasSubstr("received activation"));
  EXPECT_EQ(m.rows[2].refused, "");
}

TEST(CodecMeasureTest, ASupportIsThatOfTheActivationOfTheName) {
  SampleTensor activation = Sample("activation", {64, 8});
  for (int64_t i = 0; i < 512; i += 2) activation.x.floats()[i] = 0;
  const Measurements m =
      Measured({"fp16(support=received_nonzero)"}, {activation, Sample("gradient", {64, 8})});
  EXPECT_THAT(m.rows[0].refused, HasSubstr("received activation"));
  EXPECT_NEAR(m.rows[1].wire_bits_per_element, 8, 2);  // half of the elements, and a frame
  EXPECT_THAT(m.rows[1].relative_error, AllOf(Gt(0), Lt(1e-3)));
}

TEST(CodecMeasureTest, RoundsEndWhenTheTimeIsOver) {
  MeasureOptions options;
  options.seconds = 0;
  EXPECT_EQ(Measured({"none"}, {Sample("gradient", {8, 8})}, options).rounds, 1);
}

TEST(CodecMeasureTest, TheStandardCodecsAllExist) {
  for (const std::string& text : StandardCodecs()) EXPECT_TRUE(ParseCodec(text).ok()) << text;
  for (const CodecMeasurement& row :
       Measured(StandardCodecs(), {Sample("gradient", {8, 4, 4, 16})}).rows) {
    EXPECT_EQ(row.refused, "") << row.codec;
  }
}

TEST(CodecMeasureTest, BothFormatsHaveEveryRow) {
  const Measurements m = Measured({"fp16", "low_rank(rank=9)"}, {Sample("gradient", {64, 8})});
  const std::string table = FormatMeasurements(m, TextFormat::kMarkdown);
  EXPECT_THAT(table, HasSubstr("| fp16 | gradient | 17."));
  EXPECT_THAT(table, HasSubstr("refused: low_rank: rank 9"));
  const auto json = nlohmann::json::parse(FormatMeasurements(m, TextFormat::kJson));
  EXPECT_EQ(json["rounds"], 3);
  EXPECT_EQ(json["rows"][0]["codec"], "fp16");
  EXPECT_TRUE(json["rows"][1].contains("refused"));
}

}  // namespace
}  // namespace thinwire
