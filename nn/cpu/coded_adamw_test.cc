#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"
#include "nn/moment_codes.h"

namespace thinwire::cpu {
namespace {

// A parameter whose means are codes.
struct CodedState {
  explicit CodedState(int64_t n)
      : value(n), gradient(n), mean(MomentWords(n)), square(MomentWords(n)) {}

  int64_t n() const { return static_cast<int64_t>(value.size()); }
  CodedMean coded_mean() { return CodedMeanIn(mean.data(), n()); }
  CodedMean coded_square() { return CodedMeanIn(square.data(), n()); }

  void Step(AdamWUpdate update, int threads = 1) {
    AdamWParameter parameter;
    parameter.value = value.data();
    parameter.gradient = gradient.data();
    parameter.n = n();
    parameter.weight_decay = 0.1f;
    parameter.coded_mean = coded_mean();
    parameter.coded_square = coded_square();
    update.parameters = &parameter;
    update.count = 1;
    ASSERT_TRUE(NewCpuOps(threads)->AdamW(update).ok());
  }

  Floats value, gradient, mean, square;
};

AdamWUpdate TenSteps(int64_t step) {
  AdamWUpdate update;
  update.step = step;
  update.lr = 0.01;
  update.beta1 = 0.9;
  update.beta2 = 0.999;
  update.epsilon = 1e-8;
  return update;
}

// Returns numbers in [-1, 1), those of tests/parity/moment_codes.py.
Floats Spread(uint64_t first, int64_t n) {
  Floats values(n);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t word = (first + static_cast<uint64_t>(i)) * 2654435761U % (uint64_t{1} << 32);
    values[i] = static_cast<float>(word >> 8) / 0x1p23f - 1;
  }
  return values;
}

template <typename T>
uint32_t Digest(const T* words, int64_t n) {
  uint32_t digest = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, words + i, sizeof(T));
    digest = digest * 31 + word;
  }
  return digest;
}

// The numbers are those of tests/parity/moment_codes.py, which computes by numpy.
TEST(CodedAdamWTest, TenStepsHaveTheBitsOfNumpys) {
  constexpr int64_t kN = 2 * kMomentBlock + 89;
  CodedState state(kN);
  state.value = Spread(0, kN);
  for (int64_t step = 1; step <= 10; ++step) {
    state.gradient = Spread(static_cast<uint64_t>(kN * step), kN);
    for (int64_t i = 0; i < kN; ++i) {
      state.gradient[i] = std::ldexp(state.gradient[i], static_cast<int>(-(i % 20)));
    }
    state.Step(TenSteps(step));
    for (const float g : state.gradient) EXPECT_EQ(g, 0);
  }
  EXPECT_EQ(Digest(state.value.data(), kN), 3467126865U);
  EXPECT_EQ(Digest(state.coded_mean().codes, kN), 1237798996U);
  EXPECT_EQ(Digest(state.coded_mean().scales, 3), 210969129U);
  EXPECT_EQ(Digest(state.coded_square().codes, kN), 3208629999U);
  EXPECT_EQ(Digest(state.coded_square().scales, 3), 3417289922U);
}

// With these rates the means are the gradient and its square, so that any value can become a code.
AdamWUpdate OnlyCodes() {
  AdamWUpdate update;
  update.step = 1;
  update.epsilon = 1;
  return update;
}

// Expects the codes that the definition gives to gradients and to their squares.
void ExpectCodesOf(const Floats& gradients) {
  CodedState state(static_cast<int64_t>(gradients.size()));
  Floats squares = gradients;
  for (float& square : squares) square *= square;
  state.gradient = gradients;
  state.Step(OnlyCodes());
  CodedState want(state.n());
  QuantizeMoments(kSignedMoments, gradients.data(), state.n(), want.coded_mean());
  QuantizeMoments(kUnsignedMoments, squares.data(), state.n(), want.coded_square());
  const auto bytes = state.mean.size() * sizeof(float);
  EXPECT_EQ(std::memcmp(state.mean.data(), want.mean.data(), bytes), 0);
  EXPECT_EQ(std::memcmp(state.square.data(), want.square.data(), bytes), 0);
}

// Returns blocks of these quotients, each with a first value of 1 or -1, which is the scale.
Floats InBlocks(const Floats& quotients, float scale) {
  Floats values;
  for (const float quotient : quotients) {
    if (values.size() % kMomentBlock == 0) values.push_back(scale);
    values.push_back(scale * quotient);
  }
  return values;
}

TEST(CodedAdamWTest, EveryQuotientTakesTheCodeOfTheDefinition) {
  Floats quotients;
  const auto add_around = [&quotients](float value) {
    for (const float near : {value, std::nextafter(value, 2.0f), std::nextafter(value, -2.0f)}) {
      if (std::abs(near) <= 1) quotients.push_back(near);
    }
  };
  for (const float middle : kSignedMoments.middles) add_around(middle);
  for (const float middle : kUnsignedMoments.middles) add_around(std::sqrt(middle));
  // The first and last of the numbers that share their upper 16 bits.
  for (uint32_t upper = 0x3300; upper <= 0x3F80; ++upper) {
    const uint32_t bits = upper << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    add_around(value);
    add_around(-value);
  }
  for (const float scale : {1.0f, -1.0f}) ExpectCodesOf(InBlocks(quotients, scale));
}

TEST(CodedAdamWTest, BlocksOfZerosTinyAndInfiniteValuesAreThoseOfTheDefinition) {
  Floats values = RandomFloats(5 * kMomentBlock + 1, 3);
  std::fill_n(values.begin(), kMomentBlock, 0.0f);
  for (int64_t i = 0; i < kMomentBlock; ++i) values[kMomentBlock + i] *= 1e-32f;
  values[2 * kMomentBlock + 5] = std::numeric_limits<float>::infinity();
  values[3 * kMomentBlock + 9] = std::nanf("");
  ExpectCodesOf(values);
}

TEST(CodedAdamWTest, DoesNotDependOnTheThreads) {
  CodedState one(40001), three(40001);
  for (int64_t step = 1; step <= 2; ++step) {
    one.gradient = three.gradient = RandomFloats(40001, static_cast<uint64_t>(step));
    one.Step(TenSteps(step), 1);
    three.Step(TenSteps(step), 3);
  }
  EXPECT_EQ(one.value, three.value);
  EXPECT_EQ(std::memcmp(one.mean.data(), three.mean.data(), one.mean.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(one.square.data(), three.square.data(), one.mean.size() * sizeof(float)),
            0);
}

TEST(CodedAdamWTest, AFactorThatIsNoNumberChangesNothing) {
  const float factor = std::nanf("");
  CodedState state(300);
  state.gradient = RandomFloats(300, 1);
  AdamWUpdate update = TenSteps(1);
  update.clip_factor = &factor;
  state.Step(update);
  EXPECT_EQ(state.value, Floats(300));
  EXPECT_EQ(state.mean, Floats(state.mean.size()));
}

}  // namespace
}  // namespace thinwire::cpu
