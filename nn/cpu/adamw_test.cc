#include <gtest/gtest.h>

#include <cmath>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

struct State {
  Floats value, gradient, mean, square;

  explicit State(int64_t n) : value(RandomFloats(n, 1)), gradient(n), mean(n), square(n) {}

  AdamWParameter parameter(float weight_decay) {
    return {value.data(),
            gradient.data(),
            mean.data(),
            square.data(),
            static_cast<int64_t>(value.size()),
            weight_decay};
  }
};

AdamWUpdate Update(int64_t step) {
  AdamWUpdate update;
  update.count = 1;
  update.step = step;
  update.lr = 0.01;
  update.beta1 = 0.9;
  update.beta2 = 0.99;
  update.epsilon = 1e-8;
  return update;
}

// Compares with the header's formulas in fp64.
TEST(AdamWTest, IsWhatTheFormulasSay) {
  constexpr int64_t kN = 61;
  State state(kN);
  std::vector<double> p(state.value.begin(), state.value.end()), m(kN), v(kN);
  for (int step = 1; step <= 5; ++step) {
    state.gradient = RandomFloats(kN, 10 + step, 3);
    const Floats gradient = state.gradient;
    const AdamWParameter parameter = state.parameter(0.1f);
    AdamWUpdate update = Update(step);
    update.parameters = &parameter;
    update.gradient_scale = 0.5f;
    ASSERT_TRUE(NewCpuOps(2)->AdamW(update).ok());
    for (int64_t i = 0; i < kN; ++i) {
      const double g = 0.5 * gradient[i];
      p[i] -= 0.01 * double{0.1f} * p[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.99 * v[i] + 0.01 * g * g;
      p[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, step))) /
              (std::sqrt(v[i] / (1 - std::pow(0.99, step))) + 1e-8);
      EXPECT_NEAR(state.value[i], p[i], 1e-6);
      EXPECT_NEAR(state.mean[i], m[i], 1e-6);
      EXPECT_NEAR(state.square[i], v[i], 1e-6);
      EXPECT_EQ(state.gradient[i], 0);
    }
  }
}

// After the first step m' = g and v' = g^2, so the step is lr against the gradient's sign.
TEST(AdamWTest, TheFirstStepIsTheLearningRate) {
  State state(2);
  state.value = {1, -2};
  state.gradient = {4, -0.001f};
  const AdamWParameter parameter = state.parameter(0.5f);
  AdamWUpdate update = Update(1);
  update.parameters = &parameter;
  ASSERT_TRUE(NewCpuOps(1)->AdamW(update).ok());
  EXPECT_NEAR(state.value[0], 1 * (1 - 0.01 * 0.5) - 0.01, 1e-7);
  EXPECT_NEAR(state.value[1], -2 * (1 - 0.01 * 0.5) + 0.01, 1e-6);
}

TEST(AdamWTest, DoesNotDependOnTheThreads) {
  State one(40001), three(40001);
  for (State* state : {&one, &three}) {
    for (int step = 1; step <= 2; ++step) {
      state->gradient = RandomFloats(40001, step);
      const AdamWParameter parameter = state->parameter(0.1f);
      AdamWUpdate update = Update(step);
      update.parameters = &parameter;
      ASSERT_TRUE(NewCpuOps(state == &one ? 1 : 3)->AdamW(update).ok());
    }
  }
  EXPECT_EQ(one.value, three.value);
  EXPECT_EQ(one.mean, three.mean);
  EXPECT_EQ(one.square, three.square);
}

TEST(AdamWTest, EveryParameterHasItsOwnDecay) {
  State decays(3), keeps(3);
  const AdamWParameter parameters[] = {decays.parameter(1), keeps.parameter(0)};
  const Floats before = keeps.value;
  AdamWUpdate update = Update(1);
  update.parameters = parameters;
  update.count = 2;
  ASSERT_TRUE(NewCpuOps(1)->AdamW(update).ok());
  EXPECT_EQ(keeps.value, before);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(decays.value[i], 0.99 * before[i], 1e-7);
}

TEST(SgdTest, ScalesTheGradientBeforeTheDecayIsAdded) {
  Floats value(19, 2.0f), gradient(19, 8.0f);  // a vector and a rest
  const SgdParameter parameter = {value.data(), gradient.data(), nullptr, 19};
  SgdUpdate update;
  update.parameters = &parameter;
  update.count = 1;
  update.lr = 0.5f;
  update.weight_decay = 0.25f;
  update.gradient_scale = 0.125f;
  ASSERT_TRUE(NewCpuOps(1)->Sgd(update).ok());
  EXPECT_EQ(value, Floats(19, 2 - 0.5f * (1 + 0.5f)));
  EXPECT_EQ(gradient, Floats(19, 0.0f));
}

}  // namespace
}  // namespace thinwire::cpu
