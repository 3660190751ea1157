#include "compress/codec_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compress/layout.h"
#include "compress/level.h"
#include "compress/sample_specs_testing.h"
#include "compress/spec_parameters.h"

namespace thinwire {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

TEST(CodecTableTest, HasARowForEachNumberFromZeroOn) {
  std::set<int> numbers;
  for (const CodecRow& row : CodecRows()) {
    EXPECT_TRUE(numbers.insert(static_cast<int>(row.value)).second) << row.name;
    EXPECT_EQ(&CodecRowOf(row.value), &row);
    EXPECT_STRNE(row.description, "");
  }
  EXPECT_EQ(*numbers.rbegin() + 1, static_cast<int>(CodecRows().size()));
}

TEST(CodecTableTest, ANumberOfNoCodecIsRefused) {
  CodecSpec spec;
  spec.kind = static_cast<CodecKind>(CodecRows().size());
  EXPECT_STREQ(CodecRowOf(spec.kind).name, "unknown");
  EXPECT_EQ(CheckSpec(spec).message(), absl::StrCat("codec: unknown number ", CodecRows().size(),
                                                    ", want 0 to ", CodecRows().size() - 1));
}

// What a level sets is a parameter of its codec.
TEST(CodecTableTest, ALevelIsAParameter) {
  for (const CodecRow& row : CodecRows()) {
    EXPECT_EQ(row.level == LevelField::kRatio, row.has(CodecRow::kKept)) << row.name;
    EXPECT_EQ(row.level == LevelField::kBits, row.has(CodecRow::kGrid)) << row.name;
    EXPECT_EQ(row.level == LevelField::kRate, row.has(CodecRow::kStep)) << row.name;
  }
}

TEST(CodecTableTest, EveryCodecOfOursHasABound) {
  for (const CodecRow& row : CodecRows()) {
    EXPECT_EQ(row.max_payload_bytes == nullptr, row.is_plugin) << row.name;
    for (const CodecSpec& spec : SampleSpecs(row)) {
      EXPECT_GT(CodecMaxPayloadBytes(spec, Shape{2, 3, 4}, DType::kF32), 0u) << spec.ToString();
    }
  }
}

// Codes have a byte per element behind what comes before them.
TEST(CodecTableTest, CodesLieWithinThePayload) {
  for (const CodecSpec& spec : SampleSpecsOfAll()) {
    const auto begin = CodecRowOf(spec.kind).codes_begin;
    if (begin == nullptr) continue;
    const Shape shape = {2, 3, 4};
    EXPECT_LE(begin(spec, shape) + shape.elements(), CodecMaxPayloadBytes(spec, shape, DType::kF32))
        << spec.ToString();
  }
}

TEST(SampleSpecsTest, AreOfTheirKindAndUnlike) {
  for (const CodecRow& row : CodecRows()) {
    const std::vector<CodecSpec> samples = SampleSpecs(row);
    if (row.is_plugin) {
      EXPECT_THAT(samples, IsEmpty());
      continue;
    }
    EXPECT_THAT(samples, Not(IsEmpty())) << "extend SampleNumbers by what " << row.name << " needs";
    std::set<std::string> texts;
    for (const CodecSpec& spec : samples) {
      EXPECT_EQ(spec.kind, row.value);
      EXPECT_TRUE(CheckSpec(spec).ok()) << CheckSpec(spec);
      EXPECT_TRUE(texts.insert(spec.ToString()).second) << spec.ToString();
    }
  }
}

TEST(SampleSpecsTest, HaveEveryParameter) {
  for (const CodecRow& row : CodecRows()) {
    std::set<std::string> met;
    const std::vector<CodecSpec> samples = SampleSpecs(row);
    for (const CodecSpec& spec : samples) {
      VisitParameters(spec, [&](const char* name, const auto&, const auto&) { met.insert(name); });
    }
    if (samples.empty()) continue;
    const CodecSpec spec = DefaultSpec(row.value);
    VisitAllParameters(spec, [&](const char* name, const auto&, const auto&) {
      EXPECT_EQ(met.count(name), 1u) << row.name << " " << name;
    });
  }
}

}  // namespace
}  // namespace thinwire
