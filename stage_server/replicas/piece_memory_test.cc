#include "stage_server/replicas/piece_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "nn/cpu/ops.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

class PieceMemoryTest : public ::testing::Test {
 protected:
  // Makes a parameter whose gradient is first, first + 1, ...
  Parameter Of(const Shape& shape, float first) {
    Parameter parameter;
    parameter.spec.shape = shape;
    parameter.gradient = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
    for (float& one : parameter.gradient.floats()) one = first++;
    return parameter;
  }
  PieceMemory Memory(const Piece& piece, const std::vector<Parameter*>& parameters) {
    return PieceMemory(piece, parameters, CpuDevice(), ops_.get());
  }

  const std::unique_ptr<Ops> ops_ = NewCpuOps(/*threads=*/1);
};

TEST_F(PieceMemoryTest, RowsOfAParameterAreGatheredAndScattered) {
  Parameter matrix = Of({4, 3}, 1);
  Piece piece;
  piece.shape = {2, 3};
  piece.parts = {{0, 1, 2}};
  const PieceMemory memory = Memory(piece, {&matrix});
  const Tensor rows = *memory.Gather();
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_THAT(rows.floats(), ElementsAre(4, 5, 6, 7, 8, 9));
  const Tensor sum = *Tensor::Allocate(CpuDevice(), DType::kF32, {2, 3});
  for (float& one : sum.floats()) one = -1;
  ASSERT_TRUE(memory.Scatter(sum).ok());
  EXPECT_THAT(matrix.gradient.floats(), ElementsAre(1, 2, 3, -1, -1, -1, -1, -1, -1, 10, 11, 12));
}

TEST_F(PieceMemoryTest, WholeParametersFollowOneAnother) {
  Parameter bias = Of({2}, 1), scale = Of({3}, 10);
  Piece piece;
  piece.shape = {1, 5};
  piece.parts = {{1, 0, 2}, {2, 0, 3}};
  Parameter other = Of({1}, 0);
  const PieceMemory memory = Memory(piece, {&other, &bias, &scale});
  EXPECT_THAT(memory.Gather()->floats(), ElementsAre(1, 2, 10, 11, 12));
  const Tensor sum = *Tensor::Allocate(CpuDevice(), DType::kF32, {1, 5});
  float next = 20;
  for (float& one : sum.floats()) one = next++;
  ASSERT_TRUE(memory.Scatter(sum).ok());
  EXPECT_THAT(bias.gradient.floats(), ElementsAre(20, 21));
  EXPECT_THAT(scale.gradient.floats(), ElementsAre(22, 23, 24));
  EXPECT_FALSE(memory.is_copy());
}

}  // namespace
}  // namespace thinwire
