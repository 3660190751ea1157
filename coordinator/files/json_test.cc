#include "coordinator/files/json.h"

#include <cmath>

#include "gtest/gtest.h"
#include "proto/coordinator.pb.h"
#include "proto/tune.pb.h"

namespace thinwire {
namespace {

TEST(JsonTest, FieldsStandInTheOrderOfTheProtoFileWithTheirValues) {
  StepRecord step;
  step.set_epoch(1);
  step.set_step(2);
  step.set_loss(0.1);
  step.set_accuracy(0);
  EXPECT_EQ(ToJson(step).dump(),
            R"({"epoch":1,"step":2,"loss":0.1,"accuracy":0.0,"lr":0.0,"samples":0,"seconds":0.0})");
}

TEST(JsonTest, UnsetMessagesAndOptionalScalarsAreNull) {
  Summary summary;
  summary.add_epochs()->mutable_test()->mutable_compressed()->set_loss(1);
  const nlohmann::ordered_json json = ToJson(summary);
  EXPECT_TRUE(json["error"].is_null());
  EXPECT_TRUE(json["epochs"][0]["train"].is_null());
  EXPECT_EQ(json["epochs"][0]["test"]["compressed"]["loss"], 1.0);
  EXPECT_TRUE(json["epochs"][0]["test"]["uncompressed"].is_null());
}

TEST(JsonTest, LargeIntegersKeepEveryDigit) {
  Summary summary;
  summary.set_seed(18446744073709551615u);
  EXPECT_NE(ToJson(summary).dump().find("\"seed\":18446744073709551615,"), std::string::npos);
}

TEST(JsonTest, ListsOfIntegersKeepEveryDigit) {
  TuneRung rung;
  rung.add_seeds(1);
  rung.add_seeds(18446744073709551615u);
  rung.add_candidates("none");
  EXPECT_EQ(ToJson(rung)["seeds"].dump(), "[1,18446744073709551615]");
  EXPECT_EQ(ToJson(rung)["candidates"].dump(), R"(["none"])");
}

TEST(JsonTest, NonFiniteDoublesAreNull) {
  StepRecord step;
  step.set_loss(std::nan(""));
  EXPECT_NE(ToJson(step).dump().find("\"loss\":null"), std::string::npos);
}

TEST(JsonTest, MapsAreObjectsSortedByKey) {
  Provenance provenance;
  (*provenance.mutable_libraries())["b"] = "2";
  (*provenance.mutable_libraries())["a"] = "1";
  EXPECT_EQ(ToJson(provenance)["libraries"].dump(), R"({"a":"1","b":"2"})");
}

}  // namespace
}  // namespace thinwire
