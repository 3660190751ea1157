#include "coordinator/codecs/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

nlohmann::json Parsed() { return nlohmann::json::parse(CodecList(TextFormat::kJson)); }

const nlohmann::json& Named(const nlohmann::json& list, const std::string& name) {
  for (const nlohmann::json& entry : list) {
    if (entry["name"] == name) return entry;
  }
  static const nlohmann::json none;
  return none;
}

TEST(CodecListTest, HasEveryCodecAndEveryCompensation) {
  const nlohmann::json all = Parsed();
  EXPECT_EQ(all["codecs"].size(), 12u);
  for (const char* kind : {"none", "ef", "lazy", "ef21", "aq_sgd", "ef_mixed_a", "ef_mixed_b"}) {
    EXPECT_FALSE(Named(all["feedback"], kind).is_null()) << kind;
  }
}

TEST(CodecListTest, HasDefaultsAndParametersThatComeWithOthers) {
  const nlohmann::json all = Parsed();
  const nlohmann::json& uniform = Named(all["codecs"], "uniform")["parameters"];
  EXPECT_EQ(uniform["bits"], "8");
  EXPECT_EQ(uniform["scope"], "tensor");
  EXPECT_EQ(uniform["group"], "");
  EXPECT_EQ(uniform["rotation_block"], "1024");
  EXPECT_EQ(Named(all["codecs"], "topk")["parameters"]["scope"], "sample");
  EXPECT_EQ(Named(all["feedback"], "aq_sgd")["parameters"]["key"], "sample");
  EXPECT_EQ(Named(all["feedback"], "ef")["parameters"]["decay"], "1");
}

TEST(CodecListTest, ATableHasALineForEach) {
  const std::string text = CodecList(TextFormat::kMarkdown);
  EXPECT_THAT(text, HasSubstr("\n| low_rank | two factors"));
  EXPECT_THAT(text, HasSubstr("\n| ef21 | differences from a state"));
}

}  // namespace
}  // namespace thinwire
