#include "coordinator/probe/probe.h"

#include <cstring>

#include "config/experiment.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// head.fc.weight: [10, 64]; head.fc.bias: [10]. Nothing is trained before the cut.
constexpr char kExperiment[] = R"(
model:
  name: custom
  blocks:
    - {name: flat, layers: [{kind: flatten}]}
    - {name: head, layers: [{kind: linear, name: fc, out: 10}]}
data: {name: digits, batch_size: 2}
pipeline: {cuts: [flat]}
optimizer: {lr: 0.1}
epochs: 1
)";

StoredTensor Gradient(const std::string& name, int64_t elements) {
  static const std::string ones = [] {
    const std::vector<float> values(640, 1.0f);
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }();
  return {name, "F32", {elements}, std::string_view(ones).substr(0, elements * sizeof(float))};
}

std::string File(const std::vector<StoredTensor>& tensors) {
  std::string file;
  const absl::Status status =
      WriteSafetensors({{}, tensors}, std::string::npos, [&](std::string_view piece) {
        file += piece;
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return file;
}

class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest() {
    first_.gradients = File({});
    last_.gradients = File({Gradient("head.fc.weight", 640), Gradient("head.fc.bias", 10)});
  }

  absl::Status Probe() {
    const auto experiment = ParseExperiment(kExperiment, "test", {});
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    ProbeTask task;
    task.experiment = *experiment;
    ProbeConfiguration fp16;
    fp16.activations.emplace().kind = CodecKind::kFp16;
    task.configurations = {fp16};
    Fleet fleet({first_.address(), last_.address()}, "run", FleetOptions());
    const absl::Status status = RunProbe(
        task, &fleet, [](const std::string&) {}, &report_);
    fleet.Release();
    return status;
  }
  std::string Refusal() {
    const absl::Status status = Probe();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  }

  FakeStage first_, last_;
  ProbeReport report_;
};

TEST_F(ProbeTest, EqualGradientsHaveCosineOne) {
  const absl::Status status = Probe();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(report_.segments(), ElementsAre("flat", "head"));
  ASSERT_EQ(report_.rows_size(), 1);
  EXPECT_EQ(report_.rows(0).all().cosine().mean(), 1.0);
  EXPECT_EQ(report_.rows(0).all().relative_error().mean(), 0.0);
}

TEST_F(ProbeTest, OutliersAmongActivationsAreTold) {
  std::vector<float> values(2 * 64, 1.0f);
  values[3] = values[64 + 3] = 100;
  const std::string_view data(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  first_.captured = File({{"flat/activation/step1/microbatch0", "F32", {2, 64}, data}});
  ASSERT_TRUE(Probe().ok());
  EXPECT_THAT(report_.warnings(),
              ElementsAre(HasSubstr("flat, activations: 1 of 64 channels have a mean square")));
}

TEST_F(ProbeTest, AGradientOfAnotherSizeIsNamedWithBoth) {
  last_.gradients = File({Gradient("head.fc.weight", 639), Gradient("head.fc.bias", 10)});
  EXPECT_EQ(Refusal(), "stage 1 (" + last_.address() +
                           "): a gradient of head.fc.weight with 639 elements, want 640");
}

TEST_F(ProbeTest, AGradientThatComesTwiceIsNamed) {
  first_.gradients = File({Gradient("head.fc.bias", 10)});
  EXPECT_THAT(Refusal(), HasSubstr("stage 1 (" + last_.address() +
                                   "): a second gradient of head.fc.bias, want one"));
}

TEST_F(ProbeTest, AParameterWithoutAGradientIsNoticed) {
  last_.gradients = File({Gradient("head.fc.weight", 640)});
  EXPECT_THAT(Refusal(), HasSubstr("gradients of 1 parameters, want 2"));
}

TEST_F(ProbeTest, AStrangersGradientIsNamed) {
  first_.gradients = File({Gradient("conv1.weight", 3)});
  EXPECT_THAT(Refusal(),
              HasSubstr("stage 0 (" + first_.address() + "): a gradient of conv1.weight"));
}

TEST_F(ProbeTest, AFileThatIsNoneNamesItsStage) {
  last_.gradients = "abc";
  EXPECT_THAT(Refusal(),
              HasSubstr("stage 1 (" + last_.address() + "): its gradients: safetensors"));
}

TEST_F(ProbeTest, MoreBytesThanTheModelHasEndTheProbe) {
  last_.gradients = std::string(10'000, 'x');
  EXPECT_THAT(Refusal(), HasSubstr("its gradients have 10000 bytes or more, want at most 4188"));
}

}  // namespace
}  // namespace thinwire
