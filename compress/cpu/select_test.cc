#include "compress/cpu/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "compress/half.h"

namespace thinwire {
namespace {

// Tests against sorting, for arrays on either side of every change of method.
TEST(SelectLargestTest, AgreesWithSorting) {
  for (size_t n : {1, 5, 64, 4096, 4097, 30000}) {
    RandomStream random(RandomKey(n, "select"));
    std::vector<float> x(n);
    for (float& value : x) {
      value = std::ldexp(random.NextFloat() - 0.5f, static_cast<int>(random.Below(40)) - 20);
      if (random.Below(4) == 0) value = 0.25f;
    }
    std::vector<uint32_t> sorted(n);
    std::transform(x.begin(), x.end(), sorted.begin(),
                   [](float v) { return BitsOf(v) & kMagnitudeMask; });
    std::sort(sorted.rbegin(), sorted.rend());
    for (size_t k : {size_t{1}, n / 10 + 1, n / 2 + 1, n}) {
      const Selection s = SelectLargest(x.data(), n, k, /*threads=*/1);
      const uint32_t kth = sorted[k - 1];
      ASSERT_TRUE(s.finite);
      if (s.all_ties) {
        ASSERT_EQ(std::count_if(sorted.begin(), sorted.end(),
                                [&](uint32_t m) { return m >= s.threshold; }),
                  static_cast<std::ptrdiff_t>(k));
      } else {
        ASSERT_EQ(s.threshold, kth);
        const auto num_above =
            std::count_if(sorted.begin(), sorted.end(), [&](uint32_t m) { return m > kth; });
        ASSERT_EQ(s.num_ties + num_above, k);
      }
    }
  }
}

TEST(SelectLargestTest, ReportsWhatIsNotFinite) {
  for (size_t n : {10, 10000}) {
    std::vector<float> x(n, 1.0f);
    x[n / 2] = NAN;
    EXPECT_FALSE(SelectLargest(x.data(), n, 1, /*threads=*/1).finite);
    x[n / 2] = -INFINITY;
    EXPECT_FALSE(SelectLargest(x.data(), n, n, /*threads=*/1).finite);
  }
}

}  // namespace
}  // namespace thinwire
