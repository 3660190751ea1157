// Tests cuDNN's plans for an H200, which need not be present: cuDNN's own libraries are enough.
#include "nn/cuda/convolution_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace thinwire::cuda {

template <>
struct CudnnAttribute<char> {
  static constexpr cudnnBackendAttributeType_t kType = CUDNN_TYPE_CHAR;
};

namespace {

// The description of an H200 as cuDNN writes it.
constexpr char kH200[] =
    R"({"deviceVer":900,"driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":150000000000,)"
    R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,)"
    R"("maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)"
    R"("smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,)"
    R"("deviceName":"NVIDIA H200"})";

// ResNet-18's convolutions, and one that no tile fits.
struct Case {
  int64_t n, in, out, pixels, kernel, stride, padding;
};
constexpr Case kCases[] = {{100, 3, 64, 32, 3, 1, 1},   {100, 64, 64, 32, 3, 1, 1},
                           {100, 64, 128, 32, 3, 2, 1}, {100, 64, 128, 32, 1, 2, 0},
                           {25, 512, 512, 4, 3, 1, 1},  {3, 5, 7, 9, 2, 3, 1}};

constexpr PlanRules kExact{/*deterministic=*/true, TensorCores::kForbidden,
                           /*most_workspace_bytes=*/1 << 30};
constexpr PlanRules kTensorCores{true, TensorCores::kAllowed, 1 << 30};
constexpr PlanRules kOnTensorCores{true, TensorCores::kRequired, 1 << 30};

class ConvolutionPlanTest : public testing::Test {
 protected:
  ConvolutionPlanTest() : h200_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
    h200_.Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
              std::vector<char>(kH200, kH200 + std::strlen(kH200)));
    const Error error = h200_.Finalize();
    EXPECT_TRUE(error.ok()) << error.message;
  }

  Error Find(const Case& of, DType compute, Pass pass, const PlanRules& rules,
             std::vector<ConvolutionPlan>* plans, size_t most = 4, size_t enough = 1000) const {
    ConvolutionGraph graph;
    graph.pass = pass;
    graph.n = of.n;
    graph.spec.in_channels = of.in;
    graph.spec.out_channels = of.out;
    graph.spec.height = graph.spec.width = of.pixels;
    graph.spec.kernel = of.kernel;
    graph.spec.stride = of.stride;
    graph.spec.padding = of.padding;
    graph.spec.compute = compute;
    return FindPlans({nullptr, &h200_}, graph, rules, most, [&](ConvolutionPlan plan) {
      plans->push_back(std::move(plan));
      return plans->size() == enough;
    });
  }

  void ExpectPlans(DType compute, std::initializer_list<Pass> passes, const PlanRules& rules) {
    for (const Case& of : kCases) {
      for (const Pass pass : passes) {
        std::vector<ConvolutionPlan> plans;
        const Error error = Find(of, compute, pass, rules, &plans);
        EXPECT_TRUE(error.ok()) << of.in << " -> " << of.out << ", " << of.pixels
                                << " pixels, pass " << static_cast<int>(pass) << ": "
                                << error.message;
        EXPECT_FALSE(plans.empty());
        for (const ConvolutionPlan& plan : plans) {
          EXPECT_LE(plan.workspace_bytes(), rules.most_workspace_bytes);
        }
      }
    }
  }

  CudnnDescriptor h200_;
};

constexpr std::initializer_list<Pass> kAll = {Pass::kForward, Pass::kBackwardData,
                                              Pass::kBackwardWeights};

TEST_F(ConvolutionPlanTest, FP32NeedsNoTensorCores) { ExpectPlans(DType::kF32, kAll, kExact); }
TEST_F(ConvolutionPlanTest, FP32MayUseThem) { ExpectPlans(DType::kF32, kAll, kTensorCores); }
TEST_F(ConvolutionPlanTest, BF16HasForwardAndDataOnTensorCores) {
  ExpectPlans(DType::kBF16, {Pass::kForward, Pass::kBackwardData}, kOnTensorCores);
}

TEST_F(ConvolutionPlanTest, WeightGradientsOfBF16ThatAreRoundedAreOnTensorCores) {
  PlanRules rounds = kOnTensorCores;
  rounds.rounds = true;
  for (const Case& of : kCases) {
    std::vector<ConvolutionPlan> plans;
    ASSERT_TRUE(Find(of, DType::kBF16, Pass::kBackwardWeights, rounds, &plans).ok());
    for (const ConvolutionPlan& plan : plans) EXPECT_TRUE(plan.is_rounded());
  }
}

// Engines for these are compiled at run time. Without a driver or NVRTC cuDNN proposes none, or
// none that can be built. That it accepts the graph can be seen anywhere.
TEST_F(ConvolutionPlanTest, WeightGradientsOfBF16InFP32AreThereOrUnimplemented) {
  for (const Case& of : kCases) {
    std::vector<ConvolutionPlan> plans;
    const Error error = Find(of, DType::kBF16, Pass::kBackwardWeights, kOnTensorCores, &plans);
    for (const ConvolutionPlan& plan : plans) EXPECT_FALSE(plan.is_rounded());
    EXPECT_EQ(error.ok(), !plans.empty());
    if (error.ok()) continue;
    EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(error.message), testing::StartsWith("cuDNN has no plan: "));
  }
}

TEST_F(ConvolutionPlanTest, AreOfferedUntilThereAreEnough) {
  for (const size_t enough : {1, 3}) {
    std::vector<ConvolutionPlan> plans;
    EXPECT_TRUE(Find(kCases[1], DType::kF32, Pass::kForward, kExact, &plans, 4, enough).ok());
    EXPECT_EQ(plans.size(), enough);
  }
}

TEST_F(ConvolutionPlanTest, RulesLeaveOutPlans) {
  std::vector<ConvolutionPlan> plans;
  PlanRules impossible = kExact;
  impossible.most_workspace_bytes = -1;
  const Error error = Find(kCases[1], DType::kF32, Pass::kForward, impossible, &plans);
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kUnimplemented);

  const auto count = [&](Pass pass, const PlanRules& rules) {
    std::vector<ConvolutionPlan> found;
    (void)Find(kCases[1], DType::kF32, pass, rules, &found, /*most=*/1000);
    return found.size();
  };
  PlanRules any_order = kTensorCores;
  any_order.deterministic = false;
  EXPECT_LT(count(Pass::kForward, kExact), count(Pass::kForward, kTensorCores));
  EXPECT_LT(count(Pass::kBackwardWeights, kTensorCores), count(Pass::kBackwardWeights, any_order));
}

}  // namespace
}  // namespace thinwire::cuda
