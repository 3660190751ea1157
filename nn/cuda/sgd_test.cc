// Every bit is the CPU's: the same operations on each element, rounded one by one.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

// Two steps of parameters of these sizes, with a new learning rate in the second.
Outputs TwoSteps(Side* side, const std::vector<int64_t>& sizes, SgdUpdate update) {
  std::vector<SgdParameter> parameters;
  uint64_t seed = 1;
  for (int64_t n : sizes) {
    SgdParameter parameter;
    parameter.value = side->Of(RandomFloats(n, seed++));
    parameter.gradient = side->Of(RandomFloats(n, seed++));
    if (update.momentum != 0) parameter.velocity = side->Of(Floats(n));
    parameter.n = n;
    parameters.push_back(parameter);
  }
  update.parameters = parameters.data();
  update.count = static_cast<int64_t>(parameters.size());
  EXPECT_TRUE((*side)->Sgd(update).ok());
  update.lr *= 0.5f;
  EXPECT_TRUE((*side)->Sgd(update).ok());
  Outputs outputs;
  for (const SgdParameter& parameter : parameters) {
    outputs.push_back({"value", side->Read(parameter.value, parameter.n)});
    outputs.push_back({"gradient", side->Read(parameter.gradient, parameter.n)});
    if (parameter.velocity != nullptr) {
      outputs.push_back({"velocity", side->Read(parameter.velocity, parameter.n)});
    }
  }
  return outputs;
}

// Empty ones, less than a vector, a block's share exactly, and more than that.
const std::vector<int64_t> kSizes = {0, 1, 3, 64, 4096, 0, 0, 4097, 10000, 0};

SgdUpdate Update(float momentum, bool nesterov) {
  SgdUpdate update;
  update.lr = 0.1f;
  update.momentum = momentum;
  update.weight_decay = 0.01f;
  update.nesterov = nesterov;
  return update;
}

TEST(SgdTest, PlainIsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) { return TwoSteps(side, kSizes, Update(0, false)); });
}

TEST(SgdTest, MomentumIsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) { return TwoSteps(side, kSizes, Update(0.9f, false)); });
}

TEST(SgdTest, NesterovIsTheCpus) {
  ExpectTwins(kSameBits, [](Side* side) { return TwoSteps(side, kSizes, Update(0.9f, true)); });
}

TEST(SgdTest, ScaledGradientsAreTheCpus) {
  SgdUpdate update = Update(0.9f, true);
  update.gradient_scale = 0.3f;
  ExpectTwins(kSameBits, [&](Side* side) { return TwoSteps(side, kSizes, update); });
}

TEST(SgdTest, MoreParametersThanALaunchTakes) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 200; ++i) sizes.push_back(i % 7 * 5);
  ExpectTwins(kSameBits, [&](Side* side) { return TwoSteps(side, sizes, Update(0.9f, false)); });
}

TEST(SgdTest, NoParametersAreNoError) { EXPECT_TRUE(DeviceSide()->Sgd(Update(0.9f, false)).ok()); }

}  // namespace
}  // namespace thinwire
