#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "compress/codecs/rates.h"
#include "compress/spec.h"

namespace thinwire {
namespace {

constexpr int64_t kElements = 8000;  // so that a byte is a thousandth of a bit for each
constexpr double kRounding = 1e-9;

using BytesAtStep = std::function<double(double step)>;

struct Found {
  double step, bits;
  int tries;
};
Found Search(double rate, const BytesAtStep& bits_at, int64_t elements = kElements) {
  const auto bytes_at = [&](double step) {
    return static_cast<size_t>(std::lround(bits_at(step) * static_cast<double>(elements) / 8));
  };
  StepSearch search(rate, elements);
  int tries = 1;
  while (search.Next(bytes_at(search.step()))) ++tries;
  const double tolerance =
      tries >= kNearTries && elements >= kLargeElements ? kWideRateTolerance : kRateTolerance;
  const double bits =
      8.0 * static_cast<double>(bytes_at(search.best())) / static_cast<double>(elements);
  if (search.is_met()) {
    EXPECT_NEAR(bits / rate, 1, tolerance + kRounding);
  } else {
    EXPECT_GT(std::fabs(bits / rate - 1), tolerance - kRounding);
  }
  return {search.best(), bits, tries};
}

// Models a size that changes by a bit for each halving of the step, as at high rates.
double Falling(double step) { return std::log2(1 + 2 / step); }

TEST(StepSearchTest, MeetsARateThatFallsWithTheStepInAFewTries) {
  for (const double rate : {0.05, 0.5, 1.0, 2.0, 5.0, 12.0}) {
    const Found found = Search(rate, Falling);
    EXPECT_NEAR(found.bits / rate, 1, kRateTolerance + kRounding) << rate;
    EXPECT_LE(found.tries, 7) << rate;
  }
}

TEST(StepSearchTest, TakesTheEndThatIsNearestWhereNoStepMeetsTheRate) {
  const Found coarsest = Search(0.5, [](double step) { return 1 + Falling(step); });
  EXPECT_NEAR(coarsest.bits, 1 + Falling(kMostStep), 0.0005)
      << "a step before it takes no byte more";
  EXPECT_EQ(Search(16, [](double step) { return Falling(step) / 4; }).step, kLeastStep);
}

// Models sizes that rise again for coarser steps, as where the steps themselves are most of a
// message.
TEST(StepSearchTest, DoesNotStayAtTheEndWhereAStepBeforeItIsNearer) {
  const Found found = Search(1.5, [](double step) {
    const double octaves = std::log2(step / 8);
    return 1.52 + (octaves < 0 ? -octaves : octaves / 14);
  });
  EXPECT_NEAR(found.bits, 1.52, 0.01);
  EXPECT_NEAR(std::log2(found.step), 3, 0.25);
}

TEST(StepSearchTest, LooksBetweenNeighbourhoodsThatJump) {
  const auto jumping = [](double step) {
    const double bits = Falling(step), whole = std::floor(bits * 10) / 10;
    return whole + 0.002 * std::sin(1000 * std::log2(step));
  };
  for (const double rate : {1.03, 1.27, 2.14}) {
    const Found found = Search(rate, jumping);
    for (int i = -14 * 8; i <= 10 * 8; ++i) {
      const double bits = jumping(std::exp2(i / 8.0));
      EXPECT_LE(std::fabs(found.bits - rate), std::fabs(bits - rate) + 1e-3) << rate << " " << i;
    }
  }
}

TEST(StepSearchTest, EndsSoonWhereEveryStepTakesTheSame) {
  const Found found = Search(2, [](double) { return 0.02; });
  EXPECT_LE(found.tries, 12);
  EXPECT_EQ(found.step, kLeastStep) << "the finest of equals";
}

// Models sizes where a third of all steps give nothing but zeros. Just before them a few codes cost
// less than none.
TEST(StepSearchTest, SpendsNoTriesOfALargeMessageOnZeros) {
  int among_zeros = 0;
  const Found found = Search(
      0.5,
      [&among_zeros](double step) {
        const double octaves = std::log2(step);
        among_zeros += octaves > 3.5;
        if (octaves < 2.9) return 0.511 + 0.1 * (2.9 - octaves);
        return octaves < 3.1 ? 0.508 : 0.511;
      },
      1 << 20);
  EXPECT_LT(found.bits, 0.512);
  EXPECT_LE(among_zeros, 6) << "guesses, the coarsest step, and one before it";
}

// Models the average of a few coded tensors: its values lie on a lattice, so many codes become zero
// at the same step, and no step takes the wanted rate.
TEST(StepSearchTest, TriesAFewStepsWhereARateLiesInAJump) {
  const auto jumping = [](double step) { return step < 1.3 ? 2.4 - step / 10 : 1.6 / step; };
  for (const int64_t elements : {kLargeElements, int64_t{1} << 20}) {
    const Found found = Search(1.8, jumping, elements);
    EXPECT_NEAR(found.bits, 2.27, 0.01);
    EXPECT_LE(found.tries, kFewTries);
  }
}

// Models sizes of which the nearest is 3 % off: enough for a large message from the eighth try on.
TEST(StepSearchTest, ALargeMessageIsContentWithLessFromTheEighthTryOn) {
  const auto jumping = [](double step) { return step < 1.3 ? 2.06 : 1.2; };
  EXPECT_EQ(Search(2, jumping, kLargeElements).tries, kNearTries);
  EXPECT_GT(Search(2, jumping, kLargeElements - 1).tries, kFewTries);
}

TEST(StepSearchTest, TriesAFewStepsOfALargeMessage) {
  const Found found = Search(
      0.5, [](double step) { return 1 + Falling(step); }, 1 << 24);
  EXPECT_LE(found.tries, kFewTries);
  EXPECT_EQ(found.step, kMostStep);
}

}  // namespace
}  // namespace thinwire
