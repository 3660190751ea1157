#include "tensor/cuda/free_blocks.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

constexpr size_t kGrain = FreeBlocks::kGrain;

char* At(size_t grains) { return reinterpret_cast<char*>((1000 + grains) * kGrain); }

TEST(FreeBlocksTest, TakesWholeGrainsAndAtLeastOne) {
  FreeBlocks blocks;
  blocks.AddChunk(At(0), 4 * kGrain);
  EXPECT_EQ(blocks.Take(0), At(0));
  EXPECT_EQ(blocks.Take(1), At(1));
  EXPECT_EQ(blocks.Take(kGrain + 1), At(2));
  EXPECT_EQ(blocks.Take(1), nullptr);
}

TEST(FreeBlocksTest, TakesTheLeastBlockThatFits) {
  FreeBlocks blocks;
  blocks.AddChunk(At(0), 4 * kGrain);
  blocks.AddChunk(At(10), 2 * kGrain);
  blocks.AddChunk(At(20), 3 * kGrain);
  EXPECT_EQ(blocks.Take(2 * kGrain), At(10));
  EXPECT_EQ(blocks.Take(2 * kGrain), At(20));
  EXPECT_EQ(blocks.Take(2 * kGrain), At(0));
  EXPECT_EQ(blocks.Take(2 * kGrain), At(2));
  EXPECT_EQ(blocks.Take(2 * kGrain), nullptr);
  EXPECT_EQ(blocks.Take(kGrain), At(22));
}

TEST(FreeBlocksTest, JoinsWhatIsFreeOnEitherSide) {
  FreeBlocks blocks;
  blocks.AddChunk(At(0), 3 * kGrain);
  for (size_t i : {0, 1, 2}) ASSERT_EQ(blocks.Take(kGrain), At(i));
  blocks.Return(At(0));
  blocks.Return(At(2));
  EXPECT_EQ(blocks.Take(2 * kGrain), nullptr);
  blocks.Return(At(1));
  EXPECT_EQ(blocks.Take(3 * kGrain), At(0));
}

TEST(FreeBlocksTest, NeverJoinsTwoChunks) {
  FreeBlocks blocks;
  blocks.AddChunk(At(0), kGrain);
  blocks.AddChunk(At(1), kGrain);
  ASSERT_EQ(blocks.Take(kGrain), At(0));
  ASSERT_EQ(blocks.Take(kGrain), At(1));
  blocks.Return(At(1));
  blocks.Return(At(0));
  EXPECT_EQ(blocks.Take(2 * kGrain), nullptr);
}

}  // namespace
}  // namespace thinwire
