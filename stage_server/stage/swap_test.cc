// Checks that what blocks keep may wait elsewhere: no bit of what any stages learn changes, under
// no schedule, on no device, with nothing else that is done about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/cuda/kernels.h"
#include "config/experiment.h"
#include "nn/cuda/tested_ops_testing.h"
#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"
#include "tensor/cuda/device.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr char kResNet[] = R"(
name: swap
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 32, limit: 64, test_limit: 10}
pipeline: {cuts: [stem, layer1, layer2], microbatches: 4, threads: 1}
compression: {activations: {codec: uniform, bits: 4}, gradients: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 2
)";
constexpr char kGpt[] = R"(
name: swap
model: {name: gpt2, layers: 3, heads: 2, width: 16, dropout: 0.1}
data: {name: shakespeare, context: 24, batch_size: 6, limit: 16, test_limit: 8}
pipeline: {cuts: [h.0, h.1], microbatches: 2, threads: 1}
optimizer: {name: sgd, lr: 0.2, momentum: 0.9, clip_norm: 1}
epochs: 2
)";
const std::string kDisk = "pipeline.swap=disk", kHost = "pipeline.swap=host";
const std::string kGPipe = "pipeline.schedule=gpipe", kOne = "pipeline.stages=1";

Backend WithFile(Backend backend) {
  backend.swap.folder = ::testing::TempDir();
  return backend;
}
Backend OnCpu(int stage) { return WithFile(CpuBackend(stage)); }
Backend OnLateDevice(int /*stage*/) { return WithFile(NewLateBackend()); }
Backend OnEmulatedGpu(int /*stage*/) {
  Backend backend;
  backend.device = TestedDevice();
  static auto* const kernels = new CudaKernels(static_cast<CudaDevice*>(TestedDevice()));
  backend.kernels = kernels;
  backend.ops = NewTestedOps();
  return WithFile(backend);
}

struct Outcome {
  std::vector<double> losses;
  std::vector<float> values;
  uint64_t bytes_out = 0;
};

Outcome Trained(const char* experiment, const std::vector<std::string>& overrides,
                const BackendOf& backend_of = OnCpu, uint32_t epochs = 2) {
  Stages stages(experiment, overrides, backend_of);
  Outcome outcome;
  for (uint32_t epoch = 1; epoch <= epochs; ++epoch) {
    for (const double loss : stages.Train(epoch)) outcome.losses.push_back(loss);
    stages.Evaluate(/*compressed=*/true);
  }
  outcome.values = stages.Values();
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto counts = stages.stage(i).swap();
    if (counts) outcome.bytes_out += counts->bytes_out;
  }
  return outcome;
}

void ExpectSame(const Outcome& a, const Outcome& b) {
  EXPECT_THAT(b.losses, ElementsAreArray(a.losses));
  EXPECT_TRUE(b.values == a.values) << "parameters differ";
}

TEST(SwapTest, StagesAndSchedulesChangeNothing) {
  const Outcome plain = Trained(kResNet, {});
  EXPECT_EQ(plain.bytes_out, 0u);
  const std::vector<std::vector<std::string>> all = {
      {kOne},
      {},
      {kGPipe},
      {kGPipe, kOne},
      {"pipeline.schedule=zero_bubble"},
      {"pipeline.stages=2", "pipeline.schedule=interleaved"},
      {kGPipe, "pipeline.received=decoded"}};
  for (std::vector<std::string> overrides : all) {
    overrides.push_back(kDisk);
    SCOPED_TRACE(::testing::PrintToString(overrides));
    const Outcome swapped = Trained(kResNet, overrides);
    ExpectSame(plain, swapped);
    EXPECT_GT(swapped.bytes_out, 0u);
  }
}

TEST(SwapTest, OtherDevicesChangeNothing) {
  const Outcome plain = Trained(kResNet, {});
  for (const std::string& to : {kHost, kDisk}) {
    SCOPED_TRACE(to);
    const Outcome swapped = Trained(kResNet, {to, kGPipe}, OnLateDevice);
    ExpectSame(plain, swapped);
    EXPECT_GT(swapped.bytes_out, 0u);
  }
}

TEST(SwapTest, AGpuSwapsToTheHostAndToDisk) {
  const std::vector<std::string> few = {kGPipe, kOne, "pipeline.cuts=none", "data.limit=32"};
  const Outcome plain = Trained(kResNet, few, OnEmulatedGpu, /*epochs=*/1);
  for (const std::string& to : {kHost, kDisk}) {
    SCOPED_TRACE(to);
    std::vector<std::string> overrides = few;
    overrides.push_back(to);
    const Outcome swapped = Trained(kResNet, overrides, OnEmulatedGpu, /*epochs=*/1);
    ExpectSame(plain, swapped);
    EXPECT_GT(swapped.bytes_out, 0u);
  }
}

TEST(SwapTest, RecomputedBlocksSwapTheirInputs) {
  const std::string decoded = "pipeline.received=decoded";
  const Outcome plain = Trained(kResNet, {});
  const Outcome all = Trained(kResNet, {kDisk, kGPipe, decoded});
  const Outcome inputs = Trained(kResNet, {kDisk, kGPipe, decoded, "pipeline.recompute=blocks"});
  ExpectSame(plain, inputs);
  EXPECT_LT(inputs.bytes_out, all.bytes_out);
  EXPECT_GT(inputs.bytes_out, 0u);
}

TEST(SwapTest, PayloadsOfTheStashAreSwapped) {
  for (const char* stash :
       {"pipeline.stash={codec: uniform, bits: 8, scope: group, group: 64, rounding: stochastic}",
        "pipeline.stash={lossless: entropy}"}) {
    SCOPED_TRACE(stash);
    const Outcome stashed = Trained(kResNet, {stash});
    const Outcome swapped = Trained(kResNet, {stash, kDisk, kGPipe, kOne});
    ExpectSame(stashed, swapped);
    EXPECT_GT(swapped.bytes_out, 0u);
    EXPECT_LT(swapped.bytes_out, Trained(kResNet, {kDisk, kGPipe, kOne}).bytes_out);
    ExpectSame(stashed, Trained(kResNet, {stash, kHost, kGPipe}, OnLateDevice));
  }
}

TEST(SwapTest, SomeBlocksMaySwapAndOthersNot) {
  const Outcome plain = Trained(kResNet, {});
  const Outcome some = Trained(
      kResNet, {kDisk, kGPipe, "pipeline.keep={stem: keep, layer1.0: swap, layer2.0: recompute}"});
  ExpectSame(plain, some);
  EXPECT_LT(some.bytes_out, Trained(kResNet, {kDisk, kGPipe}).bytes_out);
}

TEST(SwapTest, LanguageModelsInSlicesAndInReplicasTrainTheSame) {
  const std::string slices = "pipeline.slices=[5, 16, 3]", terapipe = "pipeline.schedule=terapipe";
  const std::string dropout = "model.dropout=0";
  ExpectSame(Trained(kGpt, {}), Trained(kGpt, {kDisk, kGPipe}));
  ExpectSame(Trained(kGpt, {slices, terapipe, dropout}),
             Trained(kGpt, {slices, terapipe, dropout, kDisk}));
  ExpectSame(Trained(kGpt, {"replicas.count=2"}), Trained(kGpt, {"replicas.count=2", kDisk}));
}

TEST(SwapTest, WhatCannotBeIsRefusedByName) {
  const Experiment on_host = *ParseExperiment(kResNet, "test", {kHost});
  const absl::Status host = LocalStage::Build(*StageSpecFrom(on_host, 1), CpuBackend(1)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(host)) << host;
  EXPECT_THAT(std::string(host.message()),
              HasSubstr("pipeline.swap: host, and stage 1 computes on cpu"));
  const StageSpec spec = *StageSpecFrom(*ParseExperiment(kResNet, "test", {kDisk}), 1);
  EXPECT_THAT(std::string(LocalStage::Build(spec, CpuBackend(1)).status().message()),
              HasSubstr("want one with --swap_dir"));
  Backend nowhere = CpuBackend(1);
  nowhere.swap.folder = ::testing::TempDir() + "/swap_test_absent";
  EXPECT_THAT(std::string(LocalStage::Build(spec, nowhere).status().message()),
              HasSubstr(absl::StrCat("stage 1: swap file in ", nowhere.swap.folder)));
}

TEST(SwapTest, AFullDiskEndsTheRunByName) {
  const auto with_little = [](int stage) {
    Backend backend = OnCpu(stage);
    backend.swap.most_bytes = 1 << 16;
    return backend;
  };
  Stages stages(kResNet, {kDisk, kGPipe, kOne}, with_little);
  const absl::Status full = stages.TryTrain(1)[0];
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("block "), HasSubstr("swap file in " + ::testing::TempDir()),
                    HasSubstr("at most 65536 are allowed (--swap_bytes)")));
}

}  // namespace
}  // namespace thinwire
