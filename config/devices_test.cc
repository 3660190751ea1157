#include "config/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two stages.
constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: layer1}
optimizer: {lr: 0.1}
epochs: 1
)";

absl::StatusOr<Experiment> Resolved(const std::vector<std::string>& overrides) {
  return ParseExperiment(kExperiment, "test.yaml", overrides);
}

std::string ErrorWith(const std::vector<std::string>& overrides) {
  return std::string(Resolved(overrides).status().message());
}

TEST(DevicesTest, OneIsForAllStagesAndAListHasOneForEach) {
  const Experiment absent = *Resolved({});
  EXPECT_THAT(absent.device(), ElementsAre("auto"));
  EXPECT_EQ(*DeviceOf(absent, 1), "auto");
  const Experiment one = *Resolved({"device=cuda:3"});
  EXPECT_EQ(*DeviceOf(one, 0), "cuda:3");
  EXPECT_EQ(*DeviceOf(one, 1), "cuda:3");
  const Experiment each = *Resolved({"device=[cuda:1, cpu]"});
  EXPECT_EQ(*DeviceOf(each, 0), "cuda:1");
  EXPECT_EQ(*DeviceOf(each, 1), "cpu");
  EXPECT_THAT(std::string(DeviceOf(each, 2).status().message()),
              HasSubstr("2 devices, none for stage 2"));
}

TEST(DevicesTest, StagesMayShareADevice) {
  EXPECT_EQ(*DeviceOf(*Resolved({"device=[cuda, cuda]"}), 1), "cuda");
}

TEST(DevicesTest, OtherNumbersOfDevicesAreRefused) {
  EXPECT_THAT(ErrorWith({"device=[cuda:0, cuda:1, cpu]"}),
              HasSubstr("device: 3 devices, pipeline.stages is 2, want one for all stages or one "
                        "for each"));
  EXPECT_THAT(ErrorWith({"device=[cuda, cpu]", "pipeline.stages=1"}),
              HasSubstr("2 devices, pipeline.stages is 1"));
}

TEST(DevicesTest, TheWrongOneIsNamed) {
  EXPECT_THAT(ErrorWith({"device=[cuda, gpu]"}), HasSubstr("device[1]: device \"gpu\": want auto"));
}

TEST(DevicesTest, ACpuHasNoTf32) {
  EXPECT_THAT(ErrorWith({"device=[cuda, cpu]", "precision=tf32"}),
              HasSubstr("device[1]: cpu with precision tf32"));
  EXPECT_THAT(ErrorWith({"device=cpu", "precision=tf32"}), HasSubstr("device: cpu with precision"));
  EXPECT_TRUE(Resolved({"precision=tf32"}).ok());  // only the stage servers can tell
}

TEST(DevicesTest, OptionsAreThoseOfTheFile) {
  EXPECT_TRUE(OpsOptionsFrom(Experiment()).deterministic);
  const OpsOptions options = OpsOptionsFrom(*Resolved({}));
  EXPECT_TRUE(options.deterministic);
  EXPECT_FALSE(options.tf32);
  const OpsOptions fast = OpsOptionsFrom(*Resolved({"precision=tf32", "deterministic=false"}));
  EXPECT_FALSE(fast.deterministic);
  EXPECT_TRUE(fast.tf32);
}

TEST(DevicesTest, AResolvedExperimentLoadsAgain) {
  const Experiment e = *Resolved({"device=[cuda:1, cpu]", "deterministic=false"});
  EXPECT_EQ(ToYaml(*ParseExperiment(ToYaml(e), "again", {})), ToYaml(e));
}

}  // namespace
}  // namespace thinwire
