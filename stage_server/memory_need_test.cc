#include "stage_server/memory_need.h"

#include "config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StageSpec SpecOf(const std::string& width, const std::string& override = "epochs=1") {
  const absl::StatusOr<Experiment> experiment = ParseExperiment(
      "model: {name: resnet8}\n"
      "data: {name: digits, batch_size: 8}\n"
      "pipeline: {cuts: [layer1], threads: 1}\n"
      "optimizer: {name: sgd, lr: 0.1}\n"
      "epochs: 1\n",
      "test", {"model.width=" + width, override});
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *StageSpecFrom(*experiment, 1);
}

TEST(CheckFitsTest, AModelThatFitsPasses) {
  const StageSpec spec = SpecOf("8");
  const uint64_t bytes = TrainingBytesOf(spec);
  EXPECT_GT(bytes, 4'100'000u);
  EXPECT_LT(bytes, 10'000'000u);
  EXPECT_TRUE(CheckFits(spec, bytes).ok());
  EXPECT_FALSE(CheckFits(spec, bytes - 1).ok());
}

// Beside the sum of gradients: the shared parameters, their momentum, and of each replica its own.
TEST(CheckFitsTest, ReplicasThatTrainLocallyTakeCopiesOfTheParameters) {
  const auto bytes = [](const std::string& replicas) {
    return static_cast<double>(TrainingBytesOf(SpecOf("64", "replicas={" + replicas + "}")));
  };
  const double step = bytes("count: 2");
  // Feedback takes three copies of a replica's parameters.
  const double sum = (bytes("count: 2, contributions: {codec: fp16, feedback: ef}") - step) / 6;
  ASSERT_GT(sum, 0);
  EXPECT_EQ(bytes("count: 2, contributions: {codec: fp16, feedback: ef}, stages: {head: "
                  "{contributions: {codec: none}}}"),
            step);
  EXPECT_NEAR(bytes("count: 2, sync: local, every: 4") - step, (2 + 2) * sum, 0.1 * sum);
  EXPECT_NEAR(bytes("count: 2, sync: local, every: 4, outer: {name: sgd}") - step, (1 + 2) * sum,
              0.1 * sum);
}

// Up to the second factor a replica's gradient is kept, and with feedback what it lost.
TEST(CheckFitsTest, FactorsTakeACopyOfTheParametersForEachReplica) {
  const auto bytes = [](const std::string& replicas) {
    return static_cast<double>(
        TrainingBytesOf(SpecOf("64", "replicas={count: 2, " + replicas + "}")));
  };
  const std::string low = "contributions: {codec: low_rank, rank: 2";
  const double exact = bytes("sync: step"), plain = bytes(low + "}");
  EXPECT_GT(plain, exact);
  EXPECT_EQ(bytes(low + ", feedback: ef}") - plain, plain - exact);
  EXPECT_EQ(bytes(low + "}, exchange: gather"), exact);
}

TEST(CheckFitsTest, AReplicaThatTrainsAloneTakesNoCopyBesideTheSharedParameters) {
  const auto bytes = [](const std::string& outer) {
    StageSpec spec = SpecOf("64", "replicas={count: 2, sync: local, every: 4, " + outer + "}");
    spec.grid.replicas = 2;
    return static_cast<double>(TrainingBytesOf(spec));
  };
  const double momentum = bytes("outer: {name: nesterov}") - bytes("outer: {name: sgd}");
  StageSpec step = SpecOf("64", "replicas={count: 2}");
  step.grid.replicas = 2;
  EXPECT_EQ(bytes("outer: {name: sgd}") - static_cast<double>(TrainingBytesOf(step)), momentum);
}

TEST(CheckFitsTest, MeansInCodesTakeLess) {
  const auto bytes = [](const std::string& more) {
    return TrainingBytesOf(SpecOf("64", "optimizer={name: adamw, lr: 0.1" + more + "}"));
  };
  EXPECT_LT(bytes(", moments: int8"), bytes(""));
  EXPECT_EQ(bytes(", place: host"), bytes(""));  // of the machine
}

TEST(CheckFitsTest, AHugeModelIsRefusedNamingStageAndBytes) {
  const absl::Status status = CheckFits(SpecOf("65536"), uint64_t{64} << 30);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("stage 1 takes about "), HasSubstr("this machine has 68.7 GB left")));
}

}  // namespace
}  // namespace thinwire
