#include <gtest/gtest.h>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

using Ids = std::vector<int32_t>;

TEST(CountPositionsTest, EndsBehindTheLastOtherIdAndIsAtLeastOne) {
  const Ids ids = {5, 6, 7, 5, 0, 0, 0, 7, 0, 0, 0, 0};
  Ids lengths(4);
  ASSERT_TRUE(NewCpuOps(1)
                  ->CountPositions(View(DType::kI32, {4, 3}, ids.data()), /*pad=*/0, lengths.data())
                  .ok());
  EXPECT_EQ(lengths, (Ids{3, 1, 2, 1}));
}

Ids TypesOf(const Ids& ids) {
  const Shape shape({1, static_cast<int64_t>(ids.size())});
  Ids types(ids.size(), 9);
  EXPECT_TRUE(NewCpuOps(1)
                  ->TokenTypes(View(DType::kI32, shape, ids.data()), /*separator=*/2,
                               View(DType::kI32, shape, types.data()))
                  .ok());
  return types;
}

TEST(TokenTypesTest, TheSecondTextHasTypeOneUpToItsSeparator) {
  EXPECT_EQ(TypesOf({1, 5, 2, 6, 7, 2, 0, 0}), (Ids{0, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(TypesOf({2, 2, 2, 3}), (Ids{0, 1, 0, 0}));
}

TEST(TokenTypesTest, WithoutASecondSeparatorAllAreZero) {
  EXPECT_EQ(TypesOf({1, 5, 2, 0, 0}), (Ids{0, 0, 0, 0, 0}));
  EXPECT_EQ(TypesOf({1, 5, 6}), (Ids{0, 0, 0}));
}

TEST(TokenTypesTest, EachSampleHasItsOwn) {
  const Ids ids = {2, 5, 2, 2, 6, 2};
  Ids types(6, 9);
  ASSERT_TRUE(NewCpuOps(1)
                  ->TokenTypes(View(DType::kI32, {2, 3}, ids.data()), 2,
                               View(DType::kI32, {2, 3}, types.data()))
                  .ok());
  EXPECT_EQ(types, (Ids{0, 1, 1, 0, 1, 1}));
}

}  // namespace
}  // namespace thinwire::cpu
