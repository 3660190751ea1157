#include "models/pieces.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

ParameterSpec Of(const std::string& name, const Shape& shape) {
  ParameterSpec spec;
  spec.name = name;
  spec.shape = shape;
  return spec;
}

TEST(PiecesTest, AMatrixIsCutAtRowsAndTheRestIsOneExactPiece) {
  const std::vector<Piece> pieces =
      PiecesOf({Of("wte.weight", {5000, 768}), Of("ln.weight", {8192}),
                Of("small.weight", {63, 65}), Of("conv.weight", {64, 64, 3, 3})});
  ASSERT_EQ(pieces.size(), 6u);
  int64_t next = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(pieces[i].coded);
    EXPECT_LE(pieces[i].shape.elements(), kPieceElements);
    ASSERT_EQ(pieces[i].parts.size(), 1u);
    EXPECT_EQ(pieces[i].parts[0].parameter, 0u);
    EXPECT_EQ(pieces[i].parts[0].first_row, next);
    EXPECT_EQ(pieces[i].name, "wte.weight[" + std::to_string(next) + "]");
    next += pieces[i].parts[0].rows;
  }
  EXPECT_EQ(next, 5000);
  EXPECT_EQ(pieces[4].name, "conv.weight[0]");
  EXPECT_EQ(pieces[4].shape, (Shape{64, 64 * 9}));
  EXPECT_EQ(pieces[5].name, "ln.weight and 1 more");
  EXPECT_FALSE(pieces[5].coded);
  EXPECT_EQ(pieces[5].shape, (Shape{1, 8192 + 63 * 65}));
}

TEST(FragmentsTest, LargeParametersAreDealtOutEvenlyAndCopiesFollow) {
  ParameterSpec head = Of("head.weight", {100, 64}), inside = Of("inside.weight", {64, 64});
  head.tied_to = "wte.weight";
  inside.within = "basis";
  const auto fragments =
      FragmentsOf({Of("wte.weight", {100, 64}), Of("a.weight", {64, 64}), Of("b.weight", {64, 64}),
                   inside, Of("small.weight", {3, 3}), head},
                  /*fragments=*/2);
  EXPECT_EQ(fragments,
            (std::map<std::string, int>{
                {"wte.weight", 0}, {"a.weight", 1}, {"b.weight", 1}, {"head.weight", 0}}));
}

TEST(PiecesTest, ARowThatIsLongerThanAPieceIsAPiece) {
  const std::vector<Piece> pieces = PiecesOf({Of("wide", {3, kPieceElements + 1})});
  ASSERT_EQ(pieces.size(), 3u);
  for (const Piece& piece : pieces) EXPECT_EQ(piece.parts[0].rows, 1);
}

TEST(PiecesTest, ABasisIsExactAndACopyIsNamedAsItsOriginal) {
  ParameterSpec basis = Of("encoder.weight", {64, 256});
  basis.orthonormal = true;
  ParameterSpec copy = Of("lm_head.weight", {128, 64});
  copy.tied_to = "wte.weight";
  const std::vector<Piece> pieces = PiecesOf({basis, copy});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].name, "wte.weight[0]");
  EXPECT_EQ(pieces[1].name, "encoder.weight");
  EXPECT_FALSE(pieces[1].coded);
}

TEST(PiecesTest, ReplicasAddUpEquallyManyElements) {
  const std::vector<Piece> pieces =
      PiecesOf({Of("a", {64, 64}), Of("b", {128, 128}), Of("c", {64, 128}), Of("d", {8})});
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(OwnersOf(pieces, /*segment=*/0, /*count=*/2), (std::vector<int>{1, 0, 1, 1}));
  EXPECT_EQ(OwnersOf(pieces, /*segment=*/3, /*count=*/2), (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(OwnersOf(pieces, /*segment=*/3, /*count=*/1), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_TRUE(OwnersOf({}, 0, 2).empty());
}

TEST(PiecesTest, NothingIsDividedIntoNothing) { EXPECT_TRUE(PiecesOf({}).empty()); }

}  // namespace
}  // namespace thinwire
