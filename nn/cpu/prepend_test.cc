#include <gtest/gtest.h>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

TEST(PrependTest, PutsTheRowBeforeThoseOfEachSample) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    TestTensor x(type, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), y(type, {2, 3, 2});
    const Floats row = {10, 20};
    ASSERT_TRUE(NewCpuOps(2)->Prepend(row.data(), x.view(), y.view()).ok());
    EXPECT_EQ(y.Read(), (Floats{10, 20, 1, 2, 3, 4, 10, 20, 5, 6, 7, 8}));
  }
}

TEST(PrependTest, ItsGradientIsAddedUpOverTheSamples) {
  TestTensor dy(DType::kF32, {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  TestTensor dx(DType::kF32, {2, 2, 2});
  Floats drow = {100, 200};
  ASSERT_TRUE(NewCpuOps(2)->PrependBackward(dy.view(), dx.view(), drow.data()).ok());
  EXPECT_EQ(dx.Read(), (Floats{3, 4, 5, 6, 9, 10, 11, 12}));
  EXPECT_EQ(drow, (Floats{108, 210}));
}

}  // namespace
}  // namespace thinwire::cpu
