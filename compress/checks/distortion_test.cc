#include "compress/checks/distortion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "compress/codecs/round_trip_testing.h"
#include "compress/cpu/kernels.h"

namespace thinwire {
namespace {

Distortion Between(const std::vector<float>& x, const std::vector<float>& y) {
  return *MeasureDistortion(TensorOf(x), TensorOf(y), CpuCodecKernels());
}

TEST(DistortionTest, MeasuresLengthAngleAndNonZeros) {
  const Distortion d = Between({3, 4, 0, 0}, {3, 0, 0, 0});
  EXPECT_DOUBLE_EQ(d.relative_error, 0.8);
  EXPECT_DOUBLE_EQ(d.cosine, 0.6);
  EXPECT_DOUBLE_EQ(d.nonzero_fraction, 0.25);
}

TEST(DistortionTest, EqualTensorsHaveNone) {
  const std::vector<float> x = RandomValues(10001, 1);
  EXPECT_EQ(Between(x, x).relative_error, 0);
  EXPECT_EQ(Between(x, x).cosine, 1);
  EXPECT_EQ(Between({1, 1}, {1, 1}).cosine, 1);  // sqrt(2) sqrt(2) is more than 2
}

TEST(DistortionTest, ZerosAreDefined) {
  EXPECT_EQ(Between({0, 0}, {0, 0}).relative_error, 0);
  EXPECT_EQ(Between({0, 0}, {0, 0}).cosine, 1);
  EXPECT_EQ(Between({0, 0}, {1, 0}).relative_error, INFINITY);
  EXPECT_EQ(Between({1, 0}, {0, 0}).relative_error, 1);
  EXPECT_EQ(Between({1, 0}, {0, 0}).cosine, 0);
  EXPECT_EQ(Between({}, {}).nonzero_fraction, 0);
}

TEST(DistortionTest, OfNanNothingIsKnown) {
  for (const auto& [x, y] : {std::pair(NAN, 1.0f), {1.0f, NAN}, {NAN, NAN}}) {
    EXPECT_TRUE(std::isnan(Between({x, 2}, {y, 2}).relative_error));
    EXPECT_TRUE(std::isnan(Between({x, 2}, {y, 2}).cosine));
  }
}

TEST(DistortionTest, ShapesMustAgree) {
  EXPECT_FALSE(
      MeasureDistortion(TensorOf({2, 1}, {1, 2}), TensorOf({1, 2}, {1, 2}), CpuCodecKernels())
          .ok());
}

}  // namespace
}  // namespace thinwire
