// Tests on the emulated GPU what a run on GPUs promises: N stages compute what one stage does,
// numbers are close to the CPU's, and a GPU and a CPU in one pipeline keep equal state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/cpu/ops.h"
#include "tests/pipeline_testing.h"

namespace thinwire {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAreArray;
using ::testing::Pointwise;
using ::testing::SizeIs;

constexpr char kPlugin[] = "backend/emulated/libthinwire_emulated.so";

// The quickstart's experiment, narrower and shorter.
constexpr char kExperiment[] = R"(
name: device
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 10, limit: 25, test_limit: 20}
pipeline: {cuts: [layer1, layer2], microbatches: 2, threads: 1}
metrics: {error_every: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.0005}
epochs: 1
device: cuda
)";

Trained Train(const std::vector<std::string>& overrides) {
  return TrainPipeline(kExperiment, overrides, /*tcp=*/false, kPlugin);
}

std::vector<std::string> Both(const std::string& direction, const std::string& more) {
  return {absl::StrCat("compression.activations={", direction, "}"),
          absl::StrCat("compression.gradients={", direction, "}"), more};
}

const char* const kDirections[] = {
    "codec: none",
    "codec: topk, ratio: 0.2",
    "codec: topk, ratio: 0.2, feedback: {kind: ef21, digest_every: 1}",
    "codec: uniform, bits: 4, feedback: ef",
    "codec: low_rank, rank: 2, feedback: {kind: ef21, digest_every: 1}",
};

class DeviceTest : public ::testing::TestWithParam<const char*> {};

TEST_P(DeviceTest, StagesOnAGpuAreOneStage) {
  const Trained one = Train(Both(GetParam(), "pipeline.stages=1"));
  ASSERT_THAT(one.step_losses, SizeIs(3));
  const Trained three = Train(Both(GetParam(), "pipeline.stages=3"));
  EXPECT_THAT(three.step_losses, ElementsAreArray(one.step_losses));
  EXPECT_EQ(three.compressed_loss, one.compressed_loss);
  EXPECT_EQ(three.uncompressed_loss, one.uncompressed_loss);
  EXPECT_EQ(three.recalibrated_loss, one.recalibrated_loss);
  EXPECT_TRUE(three.parameters == one.parameters);
  for (const auto& [name, sender] : one.boundaries) {
    EXPECT_EQ(three.boundaries.at(name).wire_bytes(), sender.wire_bytes()) << name;
  }
}

// The messages have 20 KiB and go by memory of both ends, so the device copies those that are
// exact.
TEST(DeviceCopiesTest, StagesWhoseMessagesTheDeviceCopiesAreOneStage) {
  const char* const ef21 = "codec: topk, ratio: 0.2, feedback: {kind: ef21, digest_every: 1}";
  for (const char* const direction : {"codec: none", ef21}) {
    SCOPED_TRACE(direction);
    const auto train = [&](const std::string& more) {
      std::vector<std::string> overrides = Both(direction, more);
      for (const char* other :
           {"data.batch_size=40", "data.limit=80", "compression.warmup_steps=1"}) {
        overrides.push_back(other);
      }
      return Train(overrides);
    };
    const Trained one = train("pipeline.stages=1"), three = train("pipeline.stages=3");
    ASSERT_THAT(one.step_losses, SizeIs(2));
    EXPECT_THAT(three.step_losses, ElementsAreArray(one.step_losses));
    EXPECT_EQ(three.uncompressed_loss, one.uncompressed_loss);
    EXPECT_TRUE(three.parameters == one.parameters);
    EXPECT_THAT(train("device=[cuda, cpu, cuda]").step_losses,
                Pointwise(DoubleNear(1e-3), one.step_losses));
  }
}

TEST(DeviceScheduleTest, SplitBackwardPassesChangeNothing) {
  const std::vector<std::string> uniform = {"compression.activations={codec: uniform, bits: 4}"};
  const auto with = [&](const char* schedule) {
    return Train({uniform[0], absl::StrCat("pipeline.schedule=", schedule), "data.batch_size=20",
                  "pipeline.microbatches=4", "epochs=3"});
  };
  const Trained whole = with("1f1b"), split = with("zero_bubble");
  ASSERT_THAT(whole.step_losses, SizeIs(6));
  EXPECT_THAT(split.step_losses, ElementsAreArray(whole.step_losses));
  EXPECT_TRUE(split.parameters == whole.parameters);
}

// The receivers compare the digests of the state at every step.
TEST_P(DeviceTest, AGpuAndACpuTrainTogether) {
  for (const char* devices : {"device=[cuda, cpu, cuda]", "device=[cpu, cuda, cpu]"}) {
    SCOPED_TRACE(devices);
    EXPECT_THAT(Train(Both(GetParam(), devices)).step_losses, SizeIs(3));
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, DeviceTest, ::testing::ValuesIn(kDirections));

TEST(DeviceLossTest, IsCloseToTheCpus) {
  const std::vector<std::string> exact = {"compression.activations.codec=none"};
  const Trained gpu = Train(exact);
  const Trained cpu = Train({exact[0], "device=cpu"});
  EXPECT_THAT(gpu.step_losses, Pointwise(DoubleNear(1e-3), cpu.step_losses));
  EXPECT_NEAR(gpu.uncompressed_loss, cpu.uncompressed_loss, 1e-3);
  EXPECT_NE(gpu.step_losses, std::vector<double>());
}

// The head has a copy of the embedding's weight. The norm in each step is that of the whole
// gradient.
constexpr char kLanguageModel[] = R"(
name: language
model: {name: gpt2, layers: 1, heads: 2, width: 16, dropout: 0.1}
data: {name: shakespeare, context: 16, batch_size: 4, limit: 10, test_limit: 4}
pipeline: {cuts: [embedding, h.0], microbatches: 2, threads: 1}
optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, clip_norm: 0.5}
epochs: 1
device: cuda
)";

Trained TrainLanguageModel(const std::vector<std::string>& overrides) {
  return TrainPipeline(kLanguageModel, overrides, /*tcp=*/false, kPlugin);
}

TEST(DeviceLanguageModelTest, StagesOnAGpuAreOneStageAndCloseToTheCpu) {
  for (const char* dropout : {"model.dropout=0.1", "model.dropout=0"}) {
    SCOPED_TRACE(dropout);
    const Trained one = TrainLanguageModel({"pipeline.stages=1", dropout});
    ASSERT_THAT(one.step_losses, SizeIs(3));
    const Trained three = TrainLanguageModel({"pipeline.stages=3", dropout});
    EXPECT_THAT(three.step_losses, ElementsAreArray(one.step_losses));
    EXPECT_EQ(three.uncompressed_loss, one.uncompressed_loss);
    EXPECT_TRUE(three.parameters == one.parameters);
    const Trained cpu = TrainLanguageModel({"device=cpu", dropout});
    EXPECT_THAT(one.step_losses, Pointwise(DoubleNear(1e-3), cpu.step_losses));
    EXPECT_NEAR(one.uncompressed_loss, cpu.uncompressed_loss, 1e-3);
  }
}

// Hidden weights have more than 4096 elements. The update has the same bits on the host.
TEST(DeviceLanguageModelTest, StagesWithMeansInCodesOrOnTheHostAreOneStage) {
  for (const char* moments : {"fp32", "int8"}) {
    SCOPED_TRACE(moments);
    const auto train = [&](const std::string& place, const std::string& more) {
      return TrainLanguageModel(
          {"model.width=64",
           absl::StrCat("optimizer={name: adamw, lr: 0.01, weight_decay: 0.1, clip_norm: 0.5, "
                        "moments: ",
                        moments, ", place: ", place, "}"),
           more});
    };
    const Trained one = train("device", "pipeline.stages=1");
    ASSERT_THAT(one.step_losses, SizeIs(3));
    for (const char* place : {"device", "host"}) {
      const Trained three = train(place, "pipeline.stages=3");
      EXPECT_THAT(three.step_losses, ElementsAreArray(one.step_losses)) << place;
      EXPECT_TRUE(three.parameters == one.parameters) << place;
    }
    EXPECT_THAT(train("host", "device=[cuda, cpu, cuda]").step_losses, SizeIs(3));
  }
}

// A stage puts away the means of the replica that does not train.
TEST(DeviceLanguageModelTest, MeansOfReplicasOnTheHostHaveTheBitsOfThoseOnTheDevice) {
  const auto train = [](const std::string& place) {
    return TrainLanguageModel(
        {"model.width=64", "model.dropout=0", "replicas={count: 2, sync: local, every: 2}",
         absl::StrCat("optimizer={name: adamw, lr: 0.01, moments: int8, place: ", place, "}")});
  };
  const Trained device = train("device"), host = train("host");
  ASSERT_THAT(device.step_losses, SizeIs(3));
  EXPECT_THAT(host.step_losses, ElementsAreArray(device.step_losses));
  EXPECT_TRUE(host.parameters == device.parameters);
}

// Each stage keeps the keys and values of earlier slices in a cache on its device.
TEST(DeviceLanguageModelTest, StagesThatTrainBySlicesAreOneStageAndCloseToTheCpu) {
  const auto train = [](const std::string& more, const std::string& precision) {
    return TrainLanguageModel({"model.dropout=0", "model.width=64", "pipeline.schedule=terapipe",
                               "pipeline.slices=[5, 8, 3]", "precision=" + precision, more});
  };
  for (const auto& [precision, bound] : {std::pair("fp32", 1e-3), std::pair("bf16", 2e-2)}) {
    SCOPED_TRACE(precision);
    const DType type = precision == std::string("bf16") ? DType::kBF16 : DType::kF32;
    // Skips bf16 where the processor has no AVX512-BF16.
    if (!NewCpuOps(/*threads=*/1)->CheckComputeType(type).ok()) continue;
    const Trained one = train("pipeline.stages=1", precision);
    ASSERT_THAT(one.step_losses, SizeIs(3));
    const Trained three = train("pipeline.stages=3", precision);
    EXPECT_THAT(three.step_losses, ElementsAreArray(one.step_losses));
    EXPECT_TRUE(three.parameters == one.parameters);
    const Trained cpu = train("device=cpu", precision);
    EXPECT_THAT(one.step_losses, Pointwise(DoubleNear(bound), cpu.step_losses));
    EXPECT_THAT(train("device=[cuda, cpu, cuda]", precision).step_losses,
                Pointwise(DoubleNear(bound), cpu.step_losses));
  }
}

// Each step multiplies whole matrices, every cut carries token ids, and both of its sides have a
// basis.
TEST(DeviceSubspaceTest, StagesOnAGpuAreOneStageCloseToTheCpuAndTrainWithOne) {
  const auto train = [](const std::string& more) {
    return TrainLanguageModel({"compression.bottleneck={kind: learned_subspace, width: 4}",
                               "optimizer={name: muon, lr: 0.02, adamw_lr: 0.01}",
                               "model.dropout=0", more});
  };
  const Trained one = train("pipeline.stages=1");
  ASSERT_THAT(one.step_losses, SizeIs(3));
  const Trained three = train("pipeline.stages=3");
  EXPECT_THAT(three.step_losses, ElementsAreArray(one.step_losses));
  EXPECT_TRUE(three.parameters == one.parameters);
  EXPECT_THAT(one.step_losses, Pointwise(DoubleNear(1e-3), train("device=cpu").step_losses));
  EXPECT_THAT(train("device=[cuda, cpu, cuda]").step_losses,
              Pointwise(DoubleNear(1e-3), one.step_losses));
}

// Both ends of the tied cut keep equal state, which the receivers compare.
TEST(DeviceLanguageModelTest, AGpuAndACpuTrainTogether) {
  const char kTied[] =
      "compression.boundaries.tied={activations: {codec: topk, ratio: 0.1, feedback: {kind: ef21, "
      "digest_every: 1}}, gradients: {codec: uniform, bits: 4, feedback: ef}}";
  EXPECT_THAT(TrainLanguageModel({"device=[cuda, cuda, cpu]", kTied, "precision=fp32"}).step_losses,
              SizeIs(3));
}

}  // namespace
}  // namespace thinwire
