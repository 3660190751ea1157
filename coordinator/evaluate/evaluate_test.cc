#include "coordinator/evaluate/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/codec_pair.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/fleet/fake_stage_testing.h"

namespace thinwire {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kExperiment[] = R"(
model:
  name: custom
  blocks:
    - {name: flat, layers: [{kind: flatten}]}
    - {name: head, layers: [{kind: linear, name: fc, out: 10}]}
data: {name: digits, batch_size: 2}
pipeline: {cuts: [flat]}
compression: {activations: {codec: fp16}, gradients: {codec: fp16}}
optimizer: {lr: 0.1}
epochs: 1
)";

Experiment Parsed(const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

CodecSpec Codec(const std::string& text) { return ParseCodecPair(text, "")->activations; }

// Two stages, and four test samples whose 64 values cross the cut.
class EvaluateTest : public ::testing::Test {
 protected:
  EvaluateTest() {
    for (FakeStage* const stage : {&first_, &last_}) stage->configured.set_test_samples(4);
    first_.evaluate = [this](const EvaluateRequest& request, grpc::ServerContext*,
                             FakeStage::Writer* writer) {
      epoch_ = request.epoch();
      StageEvent event;
      event.set_evaluation_wire_bytes(request.compressed() ? 256 : 1024);
      writer->Write(event);
      return grpc::Status::OK;
    };
    last_.evaluate = [this](const EvaluateRequest& request, grpc::ServerContext*,
                            FakeStage::Writer* writer) {
      StageEvent event;
      event.mutable_evaluation()->set_loss(request.compressed() ? ++compressed_ : 0.5);
      event.mutable_evaluation()->set_correct(3);
      event.mutable_evaluation()->set_labels(4);
      event.mutable_evaluation()->set_samples(request.samples());
      writer->Write(event);
      return grpc::Status::OK;
    };
  }
  absl::Status Evaluate() {
    Fleet fleet({first_.address(), last_.address()}, "run", FleetOptions());
    const absl::Status status = RunEvaluations(
        task_, &fleet, [this](const EvaluateRow& row) { said_.push_back(row.codec()); }, &report_);
    fleet.Release();
    return status;
  }

  FakeStage first_, last_;
  int compressed_ = 0;
  uint32_t epoch_ = 0;  // that was evaluated last
  EvaluationTask task_{Parsed(), std::nullopt, {}, std::nullopt};
  EvaluateReport report_;
  std::vector<std::string> said_;
};

TEST_F(EvaluateTest, ARowEachIsToldAtOnce) {
  task_.codecs = {Codec("uniform(bits=8)"), Codec("topk(ratio=0.5, scope=sample)")};
  ASSERT_EQ(Evaluate(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("none", "as trained", HasSubstr("uniform(bits=8"),
                                 HasSubstr("topk(ratio=0.5")));
  ASSERT_EQ(report_.rows_size(), 4);
  EXPECT_EQ(report_.samples(), 4u);
  EXPECT_THAT(report_.cuts(), ElementsAre("flat"));
  EXPECT_EQ(report_.rows(0).test().loss(), 0.5);
  EXPECT_EQ(report_.rows(0).test().accuracy(), 0.75);
  EXPECT_THAT(report_.rows(0).bits_per_element(), DoubleEq(32));
  EXPECT_THAT(report_.rows(1).bits_per_element(), DoubleEq(8));
  EXPECT_EQ(report_.rows(3).test().loss(), 3);
  EXPECT_EQ(report_.rows(3).loss_above_none(), 2.5);
}

TEST_F(EvaluateTest, AnExperimentWithoutCodecsHasNoRowOfItsOwn) {
  task_.experiment = Parsed({"compression.activations.codec=none"});
  ASSERT_EQ(Evaluate(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("none"));
}

TEST_F(EvaluateTest, LevelsThatFollowErrorsAreTheFirstOnes) {
  task_.experiment =
      Parsed({"compression.activations={codec: uniform, bits: 4, level: "
              "{target_error: 0.1, min: 2, max: 8}}"});
  ASSERT_EQ(Evaluate(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("none", "as trained, first levels"));
}

TEST_F(EvaluateTest, TheEpochIsTheLastThatWasTrained) {
  task_.experiment = Parsed({"epochs=9"});
  ASSERT_EQ(Evaluate(), absl::OkStatus());
  EXPECT_EQ(epoch_, 9u);
  task_.epochs = 4;
  ASSERT_EQ(Evaluate(), absl::OkStatus());
  EXPECT_EQ(epoch_, 4u);
}

TEST_F(EvaluateTest, ABottleneckIsNotLeftOut) {
  task_.experiment = Parsed({"compression={bottleneck: {width: 8}}"});
  ASSERT_EQ(Evaluate(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("as trained"));
  EXPECT_FALSE(report_.rows(0).has_loss_above_none());
  EXPECT_THAT(report_.rows(0).bits_per_element(), DoubleEq(64)) << "its code is 8 wide";
}

TEST_F(EvaluateTest, CodecsThatKeepSomethingAreCalibratedFirst) {
  std::vector<uint64_t> calibrated;  // samples of each request; 0 for those of the test set
  first_.evaluate = [&](const EvaluateRequest& request, grpc::ServerContext*,
                        FakeStage::Writer* writer) {
    calibrated.push_back(request.calibrates() ? request.samples() : 0);
    StageEvent event;
    event.set_evaluation_wire_bytes(256);
    writer->Write(event);
    return grpc::Status::OK;
  };
  for (FakeStage* const stage : {&first_, &last_}) stage->configured.set_train_samples(6);
  task_.codecs = {Codec("uniform(bits=8)"), Codec("uniform(bits=8, outliers=2)"),
                  Codec("ecsq(step=1, rotation=principal)")};
  task_.calibration_samples = 8;
  ASSERT_EQ(Evaluate(), absl::OkStatus());
  EXPECT_THAT(calibrated, ElementsAre(0, 0, 0, 6, 0, 6, 0));
  EXPECT_EQ(report_.calibration_samples(), 6u);
  EXPECT_THAT(report_.rows(3).bits_per_element(), DoubleEq(8)) << "the test set's bytes alone";
}

TEST_F(EvaluateTest, AStageThatEvaluatesFewerSamplesIsAnError) {
  last_.evaluate = [](const EvaluateRequest&, grpc::ServerContext*, FakeStage::Writer* writer) {
    StageEvent event;
    event.mutable_evaluation()->set_samples(3);
    writer->Write(event);
    return grpc::Status::OK;
  };
  EXPECT_THAT(std::string(Evaluate().message()), HasSubstr("reported 3 evaluated samples of 4"));
}

TEST(WithActivationCodecTest, IsAtAllCutsAndNothingElseIs) {
  const auto experiment = WithActivationCodec(
      Parsed({"compression.boundaries.flat.activations.codec=bf16",
              "compression.gradients.feedback=ef", "compression.warmup_epochs=1"}),
      Codec("uniform(bits=4)"));
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(DirectionOf(*experiment, "flat", /*gradient=*/false).bits(), 4u);
  EXPECT_EQ(DirectionOf(*experiment, "flat", /*gradient=*/true).codec(), "none");
  EXPECT_EQ(experiment->compression().warmup_epochs(), 0u);
}

TEST(WithActivationCodecTest, SumsAreNotCoded) {
  const auto summed = ParseExperiment(R"(
model: {name: gpt2, layers: 2, heads: 2, width: 8}
data: {name: shakespeare, tokens: bytes, context: 8}
pipeline: {cuts: [h.0]}
tensor: {parts: 2}
compression: {sums: {activations: {codec: fp16}, gradients: {codec: fp16}, from_layer: 1}}
optimizer: {lr: 0.1}
epochs: 1
)",
                                      "test", {});
  ASSERT_TRUE(summed.ok()) << summed.status();
  const auto experiment = WithActivationCodec(*summed, Codec("uniform(bits=4)"));
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(DirectionOf(*experiment, "h.0", /*gradient=*/false).bits(), 4u);
  EXPECT_EQ(experiment->compression().sums().activations().codec(), "none");
  EXPECT_EQ(experiment->compression().sums().gradients().codec(), "none");
}

}  // namespace
}  // namespace thinwire
