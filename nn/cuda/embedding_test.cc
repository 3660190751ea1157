// Every bit is the CPU's: rows of equal ids are added in the same order on both sides.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

constexpr int64_t kVocabulary = 50, kFirstPosition = 2;

// More rows than a block looks at together; ids that come often and ids that come once.
class EmbeddingTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  int64_t features() const { return std::get<1>(GetParam()); }
  Shape shape() const { return Shape({3, 107, features()}); }
  int64_t table_size() const { return kVocabulary * features(); }
  int64_t positions_size() const { return (kFirstPosition + 107) * features(); }

  TensorView Ids(Side* side) const {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 3 * 107; ++i) ids.push_back(i % 5 == 0 ? 7 : i * i % kVocabulary);
    return side->Ints(Shape({3, 107}), ids);
  }
  Embedding Arguments(Side* side) const {
    Embedding a;
    a.features = features();
    a.first_position = kFirstPosition;
    a.y = side->Unwritten(type(), shape());
    return a;
  }
};

TEST_P(EmbeddingTest, TokensAndPositionsAreTheCpus) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    Embedding a = Arguments(side);
    a.ids = Ids(side);
    a.table = side->Of(RandomFloats(table_size(), 1));
    a.vocabulary = kVocabulary;
    EXPECT_TRUE((*side)->Embed(a).ok());
    const Floats tokens = side->Read(a.y);
    a.positions = side->Of(RandomFloats(positions_size(), 2));
    EXPECT_TRUE((*side)->Embed(a).ok());
    return {{"tokens", tokens}, {"both", side->Read(a.y)}};
  });
}

TEST_P(EmbeddingTest, PositionsMayBeAddedInPlace) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    Embedding a = Arguments(side);
    a.x = a.y = side->Of(type(), shape(), RandomFloats(shape().elements(), 1));
    a.positions = side->Of(RandomFloats(positions_size(), 2));
    EXPECT_TRUE((*side)->Embed(a).ok());
    return {{"y", side->Read(a.y)}};
  });
}

TEST_P(EmbeddingTest, GradientsAreTheCpus) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    EmbeddingBackward a;
    a.ids = Ids(side);
    a.dy = side->Of(type(), shape(), RandomFloats(shape().elements(), 1));
    a.dtable = side->Of(RandomFloats(table_size(), 2));
    a.vocabulary = kVocabulary;
    a.features = features();
    a.dpositions = side->Of(RandomFloats(positions_size(), 3));
    a.first_position = kFirstPosition;
    EXPECT_TRUE((*side)->EmbedBackward(a).ok());
    const Floats dtable = side->Read(a.dtable, table_size());
    const Floats dpositions = side->Read(a.dpositions, positions_size());
    a.dtable = nullptr;  // adds to dpositions alone
    EXPECT_TRUE((*side)->EmbedBackward(a).ok());
    return {{"dtable", dtable},
            {"dpositions", dpositions},
            {"dpositions again", side->Read(a.dpositions, positions_size())}};
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, EmbeddingTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(1, 24, 37, 264)));

TEST(EmbeddingIdsTest, ARowWithoutAnIdIsNanAndAddsNothing) {
  Side side = DeviceSide();
  TensorView ids = side.Unwritten(DType::kF32, Shape({1, 3}));
  ids.dtype = DType::kI32;
  const int32_t unknown[] = {2, 1, -1};
  ASSERT_TRUE(side.device()->CopyFromHost(ids.data, unknown, sizeof(unknown)).ok());
  Embedding a;
  a.ids = ids;
  a.table = side.Of(Floats{1, 2, 3, 4});
  a.vocabulary = a.features = 2;
  a.y = side.Unwritten(DType::kF32, Shape({1, 3, 2}));
  ASSERT_TRUE(side->Embed(a).ok());
  const Floats y = side.Read(a.y);
  for (const int i : {0, 1, 4, 5}) EXPECT_TRUE(std::isnan(y[i])) << i;
  EXPECT_EQ(y[2], 3);
  EXPECT_EQ(y[3], 4);
  EmbeddingBackward backward;
  backward.ids = ids;
  backward.dy = side.Of(DType::kF32, Shape({1, 3, 2}), Floats(6, 1));
  backward.dtable = side.Of(Floats(4, 5));
  backward.vocabulary = backward.features = 2;
  ASSERT_TRUE(side->EmbedBackward(backward).ok());
  EXPECT_EQ(side.Read(backward.dtable, 4), (Floats{5, 5, 6, 6}));
}

TEST(EmbeddingIdsTest, RefusesIdsOfAnotherTypeInTheCpusWords) {
  Side device = DeviceSide(), cpu = CpuSide();
  Embedding a;
  float value = 0;
  a.table = &value;
  EXPECT_EQ(ToStatus(device->Embed(a)), ToStatus(cpu->Embed(a)));
  EXPECT_EQ(ToStatus(device->Embed(a)).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thinwire
