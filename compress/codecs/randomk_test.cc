#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compress/codecs/round_trip_testing.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

CodecSpec RandomK(double ratio, Scope scope = Scope::kTensor) {
  CodecSpec spec;
  spec.kind = CodecKind::kRandomK;
  spec.ratio = ratio;
  spec.scope = scope;
  return spec;
}

// Sorts each scope by (draw descending, index ascending) and keeps what comes first. A draw is the
// upper 30 bits of the element's number in the seed's stream.
std::vector<float> Reference(const CodecSpec& spec, const Shape& shape, const std::vector<float>& x,
                             uint64_t seed, const std::vector<float>* activation = nullptr) {
  RandomStream random(seed);
  std::vector<uint32_t> draws(x.size());
  for (uint32_t& draw : draws) draw = random.Next() >> 2;
  const Scopes scopes = ScopesOf(shape, spec.scope, 0);
  std::vector<float> y(x.size(), 0.0f);
  for (int64_t s = 0; s < scopes.count; ++s) {
    std::vector<int64_t> order;
    for (int64_t j = 0; j < scopes.elements; ++j) {
      const int64_t i = scopes.strided ? j * scopes.count + s : s * scopes.elements + j;
      if (activation == nullptr || (*activation)[i] != 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return draws[a] > draws[b]; });
    const double n = order.size();
    if (NumKept(spec, scopes.elements) < n) order.resize(NumKept(spec, scopes.elements));
    const float times = spec.unbiased ? static_cast<float>(n / order.size()) : 1.0f;
    for (int64_t i : order) y[i] = x[i] * times;
  }
  return y;
}

TEST(RandomKTest, KeepsAsSortingLotsDoesForEveryShapeScopeAndRatio) {
  const Shape shapes[] = {{1}, {2, 3}, {7, 1, 5}, {3, 17}, {4, 9, 33}, {5, 3000}};
  for (const Shape& shape : shapes) {
    const std::vector<float> x = RandomValues(shape.elements(), 3);
    const std::vector<float> activation = RandomValues(shape.elements(), 4, /*relu=*/true);
    const SupportMap support = SupportOfValues(activation);
    for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
      for (double ratio : {0.001, 0.1, 0.5, 1.0}) {
        for (bool unbiased : {false, true}) {
          CodecSpec spec = RandomK(ratio, scope);
          spec.unbiased = unbiased;
          EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, x), 5), Reference(spec, shape, x, 5))
              << spec.ToString() << shape.ToString();
          spec.support = Support::kReceivedNonzero;
          EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, x), 5, &support),
                    Reference(spec, shape, x, 5, &activation))
              << spec.ToString() << shape.ToString();
        }
      }
    }
  }
}

TEST(RandomKTest, SendsSeedAndValuesOnly) {
  for (int64_t n : {1, 10, 1000}) {
    const auto payload = *EncodeToBytes(RandomK(0.1), TensorOf(RandomValues(n, 1)));
    EXPECT_EQ(payload.size(), 8u + 4 * ((n + 9) / 10));
    CodecSpec spec = RandomK(0.1);
    spec.values = Values::kF16;
    EXPECT_EQ(EncodeToBytes(spec, TensorOf(RandomValues(n, 1)))->size(),
              8u + 2 + 2 * ((n + 9) / 10));
  }
}

TEST(RandomKTest, TheSeedIsTheMessagesKey) {
  const auto payload = *EncodeToBytes(RandomK(0.1), TensorOf({1, 2, 3}), 0x0123456789ABCDEF);
  const uint8_t seed[] = {0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01};
  EXPECT_TRUE(std::equal(seed, seed + 8, payload.begin()));
}

TEST(RandomKTest, KeepsExactlyKOfEveryScopeZerosAmongThem) {
  const Shape shape = {4, 6, 50};
  const std::vector<float> ones(shape.elements(), 1.0f);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
      const CodecSpec spec = RandomK(0.3, scope);
      const std::vector<float> y = *RoundTrip(spec, TensorOf(shape, ones), seed);
      const Scopes scopes = ScopesOf(shape, scope, 0);
      std::vector<int64_t> kept(scopes.count);
      for (size_t i = 0; i < y.size(); ++i) {
        kept[scopes.strided ? i % scopes.count : i / scopes.elements] += y[i] != 0;
      }
      EXPECT_THAT(kept, testing::Each(NumKept(spec, scopes.elements)));
    }
  }
  const Tensor zeros = TensorOf(std::vector<float>(100));
  EXPECT_EQ(EncodeToBytes(RandomK(0.3), zeros)->size(), 8u + 4 * 30);
}

// Tests the frequencies of kept elements. In 20000 draws of 5 from 50, an element is kept 2000
// times with a standard deviation of 42.4; a given pair 20000 * 5 * 4 / (50 * 49) = 163.3 times
// with one of 12.7. If seeds were not fixed, bounds of five deviations would fail one time in ten
// thousand.
TEST(RandomKTest, EveryElementAndEveryNeighbourIsKeptEquallyOften) {
  constexpr int kElements = 50, kDraws = 20000;
  const Tensor ones = TensorOf(std::vector<float>(kElements, 1.0f));
  std::vector<int> kept(kElements), pairs(kElements);
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<float> y = *RoundTrip(RandomK(0.1), ones, RandomKey(7, draw));
    for (int i = 0; i < kElements; ++i) {
      kept[i] += y[i] != 0;
      pairs[i] += y[i] != 0 && y[(i + 1) % kElements] != 0;
    }
  }
  double chi_squared = 0;
  for (int i = 0; i < kElements; ++i) {
    EXPECT_NEAR(kept[i], 2000, 5 * 42.4) << i;
    EXPECT_NEAR(pairs[i], 163.3, 5 * 12.7) << i;
    chi_squared += (kept[i] - 2000.0) * (kept[i] - 2000.0) / (42.4 * 42.4);
  }
  // About 49 degrees of freedom (the sum is fixed): 49 with a standard deviation of 10.
  EXPECT_NEAR(chi_squared * 49 / 50, 49, 45);
}

TEST(RandomKTest, UnbiasedIsTheTensorOnAverage) {
  CodecSpec spec = RandomK(0.2);
  spec.unbiased = true;
  const std::vector<float> x = {1, -2, 0, 0.5f, 3, -0.25f, 8, 1e-3f, -1, 2};
  constexpr int kDraws = 20000;
  std::vector<double> sums(x.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<float> y = *RoundTrip(spec, TensorOf(x), RandomKey(3, draw));
    for (size_t i = 0; i < x.size(); ++i) sums[i] += y[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    // Times 5 with probability 0.2: a standard deviation of 2 |x|.
    EXPECT_NEAR(sums[i] / kDraws, x[i], 5 * 2 * std::fabs(x[i]) / std::sqrt(kDraws));
  }
}

// Tests that the mean is right with codes as well: which entries are kept and how they are rounded
// must be independent.
TEST(RandomKTest, StochasticCodesOfKeptValuesAreRightOnAverage) {
  CodecSpec spec = RandomK(0.5);
  spec.values = Values::kUniform;
  spec.bits = 1;
  spec.rounding = Rounding::kStochastic;
  const std::vector<float> x = {0, 1, 0.5f, 0.25f, 0.75f, 0, 1, 0.5f};
  constexpr int kDraws = 20000;
  std::vector<double> sums(x.size()), counts(x.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    const uint64_t key = RandomKey(4, draw);
    const std::vector<float> kept = Reference(spec, {8}, {1, 1, 1, 1, 1, 1, 1, 1}, key);
    // Ends of the range must be among the kept, so that the grid is 0 and 1.
    if (kept[0] + kept[5] == 0 || kept[1] + kept[6] == 0) continue;
    const std::vector<float> y = *RoundTrip(spec, TensorOf(x), key);
    for (size_t i = 0; i < x.size(); ++i) {
      sums[i] += y[i];
      counts[i] += kept[i];
    }
  }
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_GT(counts[i], 4000);
    EXPECT_NEAR(sums[i] / counts[i], x[i], 5 * 0.5 / std::sqrt(counts[i])) << i;
  }
}

TEST(RandomKTest, RefusesNonFiniteInputAlsoWhereItIsNotKept) {
  std::vector<float> x(1000, 1.0f);
  x[77] = NAN;
  EXPECT_THAT(std::string(EncodeToBytes(RandomK(0.001), TensorOf(x)).status().message()),
              HasSubstr("randomk: element 77"));
}

TEST(RandomKTest, RefusesAValueThatOverflowsWhenRescaled) {
  CodecSpec spec = RandomK(0.5);
  spec.unbiased = true;
  EXPECT_THAT(std::string(EncodeToBytes(spec, TensorOf({3e38f, 3e38f})).status().message()),
              HasSubstr("overflows"));
}

TEST(RandomKTest, RefusesANonFiniteValueAndAnImpossibleExponent) {
  auto payload = *EncodeToBytes(RandomK(0.5), TensorOf({1, 2, 3, 4}));
  payload[8 + 3] = 0x7F;
  payload[8 + 2] = 0x80;
  EXPECT_FALSE(DecodeFromBytes(RandomK(0.5), payload, {4}).ok());
  CodecSpec half = RandomK(0.5);
  half.values = Values::kF16;
  payload = *EncodeToBytes(half, TensorOf({1, 2, 3, 4}));
  payload[8 + 1] = 0x7F;
  EXPECT_FALSE(DecodeFromBytes(half, payload, {4}).ok());
}

}  // namespace
}  // namespace thinwire
