#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"
#include "nn/dropout_mask.h"

namespace thinwire::cpu {
namespace {

Floats Dropped(const Floats& x, int64_t samples, const Dropout& options, int threads = 1,
               DType type = DType::kF32) {
  const Shape shape({samples, static_cast<int64_t>(x.size()) / samples});
  TestTensor in(type, shape, x), out(type, shape);
  Dropout a = options;
  a.x = in.view();
  a.y = out.view();
  EXPECT_TRUE(NewCpuOps(threads)->Drop(a).ok());
  return out.Read();
}

Dropout Options(float rate, uint64_t key, int64_t first_sample = 0) {
  Dropout options;
  options.rate = rate;
  options.key = key;
  options.first_sample = first_sample;
  return options;
}

TEST(DropoutTest, KeepsWhatTheMaskKeepsAndScalesIt) {
  constexpr int64_t kSamples = 3, kElements = 101;
  const Floats x = RandomFloats(kSamples * kElements, 1);
  const Floats y = Dropped(x, kSamples, Options(0.25f, 7, 40));
  for (int64_t i = 0; i < kSamples * kElements; ++i) {
    const DropoutMask mask(7, 40 + i / kElements, 0.25f);
    EXPECT_EQ(y[i], mask.Keeps(static_cast<uint32_t>(i % kElements)) ? x[i] * (1 / 0.75f) : 0);
  }
}

TEST(DropoutTest, DoesNotDependOnThreadsNorOnTheDivisionOfABatch) {
  constexpr int64_t kElements = 3001;
  const Floats x = RandomFloats(7 * kElements, 1);
  const Floats whole = Dropped(x, 7, Options(0.1f, 7));
  EXPECT_EQ(Dropped(x, 7, Options(0.1f, 7), 3), whole);
  Floats parts = Dropped(Floats(x.begin(), x.begin() + 3 * kElements), 3, Options(0.1f, 7));
  const Floats rest = Dropped(Floats(x.begin() + 3 * kElements, x.end()), 4, Options(0.1f, 7, 3));
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
}

TEST(DropoutTest, APartOfASampleHasItsPlaceInTheMask) {
  const Floats x = RandomFloats(301, 1), whole = Dropped(x, 1, Options(0.3f, 7));
  Dropout behind = Options(0.3f, 7);
  behind.first_element = 101;
  EXPECT_EQ(Dropped(Floats(x.begin() + 101, x.end()), 1, behind),
            Floats(whole.begin() + 101, whole.end()));
}

TEST(DropoutTest, MayStandInItsInputAndRoundsOnce) {
  const Shape shape({2, 501});
  TestTensor x(DType::kBF16, shape, RandomFloats(1002, 1));
  Dropout a = Options(0.3f, 5);
  const Floats wide = Dropped(x.Read(), 2, a);
  a.x = a.y = x.view();
  ASSERT_TRUE(NewCpuOps(1)->Drop(a).ok());
  EXPECT_EQ(x.Read(), TestTensor(DType::kBF16, shape, wide).Read());
}

TEST(DropoutTest, ANanIsDroppedLikeAnyOther) {
  const Floats y = Dropped(Floats(1000, std::nanf("")), 1, Options(0.5f, 1));
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(std::isnan(y[i]), DropoutMask(1, 0, 0.5f).Keeps(i));
  }
}

TEST(DropoutTest, RateZeroChangesNothing) {
  const Floats x = RandomFloats(1000, 1);
  EXPECT_EQ(Dropped(x, 1, Options(0, 1)), x);
}

TEST(DropoutTest, RefusesARateThatIsNone) {
  float x = 1;
  for (float rate : {1.0f, -0.1f, std::nanf("")}) {
    Dropout a = Options(rate, 1);
    a.x = a.y = View(DType::kF32, {1, 1}, &x);
    const Error error = NewCpuOps(1)->Drop(a);
    EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(error.message).find("rate"), std::string::npos);
  }
}

TEST(DropoutTest, RefusesASampleOfTooManyElements) {
  Dropout a = Options(0.5f, 1);
  a.x = a.y = View(DType::kF32, {1, int64_t{1} << 32}, nullptr);
  EXPECT_EQ(ToStatus(NewCpuOps(1)->Drop(a)).code(), absl::StatusCode::kInvalidArgument);
}

constexpr uint32_t kDraws = 1 << 20;

// Expects `count`, of n trials with this probability, within five standard deviations.
void ExpectBinomial(int64_t count, double probability, const std::string& what) {
  const double n = kDraws, deviation = std::sqrt(n * probability * (1 - probability));
  EXPECT_NEAR(static_cast<double>(count), n * probability, 5 * deviation) << what;
}

TEST(DropoutMaskTest, DropsAtItsRate) {
  for (float rate : {0.01f, 0.1f, 0.5f, 0.9f}) {
    for (uint64_t key : {0u, 1u, 77u}) {
      const DropoutMask mask(key, 3, rate);
      int64_t dropped = 0;
      for (uint32_t e = 0; e < kDraws; ++e) dropped += !mask.Keeps(e);
      ExpectBinomial(dropped, static_cast<double>(rate), std::to_string(rate));
    }
  }
}

// Counts where two masks decide alike, the second shifted by `lag` elements.
void ExpectIndependent(const DropoutMask& a, const DropoutMask& b, uint32_t lag, double rate,
                       const std::string& what) {
  int64_t alike = 0;
  for (uint32_t e = 0; e < kDraws; ++e) alike += a.Keeps(e) == b.Keeps(e + lag);
  ExpectBinomial(alike, rate * rate + (1 - rate) * (1 - rate), what);
}

TEST(DropoutMaskTest, NeighbouringElementsAreIndependent) {
  for (float rate : {0.1f, 0.5f}) {
    const DropoutMask mask(1, 0, rate);
    for (uint32_t lag : {1u, 2u, 3u, 4u, 16u, 64u, 768u, 1024u, 1u << 16, 1u << 31}) {
      ExpectIndependent(mask, mask, lag, static_cast<double>(rate), "lag " + std::to_string(lag));
    }
  }
}

TEST(DropoutMaskTest, NeighbouringKeysAndSamplesAreIndependent) {
  for (float rate : {0.1f, 0.5f}) {
    for (uint64_t i = 0; i < 8; ++i) {
      ExpectIndependent({i, 0, rate}, {i + 1, 0, rate}, 0, static_cast<double>(rate), "keys");
      ExpectIndependent({i, 0, rate}, {i, 1, rate}, 0, static_cast<double>(rate), "samples");
      const auto sample = static_cast<int64_t>(i);
      ExpectIndependent({9, sample, rate}, {9, sample + 1, rate}, 0, static_cast<double>(rate),
                        "later samples");
    }
  }
}

// Counts how often 4 or 8 neighbours are all kept.
TEST(DropoutMaskTest, RunsAreAsLongAsChanceHasThem) {
  const DropoutMask mask(5, 5, 0.5f);
  for (uint32_t length : {4u, 8u}) {
    int64_t runs = 0;
    for (uint32_t e = 0; e < kDraws; ++e) {
      bool all = true;
      for (uint32_t j = 0; j < length; ++j) all = all && mask.Keeps(e * length + j);
      runs += all;
    }
    ExpectBinomial(runs, std::pow(0.5, length), "runs of " + std::to_string(length));
  }
}

}  // namespace
}  // namespace thinwire::cpu
