#include <gtest/gtest.h>

#include <string>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

using Ids = std::vector<int32_t>;

const Floats kTable = {0, 1, 10, 11, 20, 21};              // [3, 2]
const Floats kPositions = {100, 200, 300, 400, 500, 600};  // [3, 2]

Embedding Of(const Ids& ids, const Shape& shape, const TensorView& y) {
  Embedding a;
  a.ids = View(DType::kI32, shape, ids.data());
  a.table = kTable.data();
  a.vocabulary = 3;
  a.features = 2;
  a.y = y;
  return a;
}

TEST(EmbeddingTest, TakesRowsByTheirIds) {
  const Ids ids = {2, 0, 2, 1};
  TestTensor y(DType::kF32, {2, 2, 2});
  ASSERT_TRUE(NewCpuOps(1)->Embed(Of(ids, {2, 2}, y.view())).ok());
  EXPECT_EQ(y.Read(), (Floats{20, 21, 0, 1, 20, 21, 10, 11}));
}

TEST(EmbeddingTest, AddsTheRowsOfPositions) {
  const Ids ids = {2, 0, 2, 1};
  TestTensor y(DType::kF32, {2, 2, 2});
  Embedding a = Of(ids, {2, 2}, y.view());
  a.positions = kPositions.data();
  a.first_position = 1;
  ASSERT_TRUE(NewCpuOps(1)->Embed(a).ok());
  EXPECT_EQ(y.Read(), (Floats{320, 421, 500, 601, 320, 421, 510, 611}));
}

TEST(EmbeddingTest, WithoutATablePositionsAreAddedToWhatThereIs) {
  TestTensor x(DType::kBF16, {2, 1, 2}, {1, 2, 3, 4});
  Embedding a;
  a.features = 2;
  a.positions = kPositions.data();
  a.x = a.y = x.view();
  ASSERT_TRUE(NewCpuOps(1)->Embed(a).ok());
  EXPECT_EQ(x.Read(), (Floats{101, 202, 103, 204}));
}

TEST(EmbeddingTest, NamesAnIdOutsideTheVocabulary) {
  TestTensor y(DType::kF32, {1, 3, 2});
  for (int32_t id : {3, -1}) {
    const Ids ids = {0, id, 1};
    const Error error = NewCpuOps(1)->Embed(Of(ids, {1, 3}, y.view()));
    EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(error.message),
              "embedding: id " + std::to_string(id) + " at position 1, want one in [0, 3)");
  }
  EXPECT_EQ(y.Read(), Floats(6, 99.0f));
}

TEST(EmbeddingTest, RefusesIdsThatAreNone) {
  TestTensor ids(DType::kF32, {1, 1}, {0}), y(DType::kF32, {1, 1, 2});
  Embedding a = Of({0}, {1, 1}, y.view());
  a.ids = ids.view();
  EXPECT_EQ(ToStatus(NewCpuOps(1)->Embed(a)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(EmbeddingTest, GradientsAreAddedToTheRowsThatWereRead) {
  const Ids ids = {2, 0, 2, 1};
  TestTensor dy(DType::kBF16, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Floats dtable = {1000, 0, 0, 0, 0, 0}, dpositions = {2000, 0, 0, 0, 0, 0};
  EmbeddingBackward a;
  a.ids = View(DType::kI32, {2, 2}, ids.data());
  a.dy = dy.view();
  a.dtable = dtable.data();
  a.vocabulary = 3;
  a.features = 2;
  a.dpositions = dpositions.data();
  a.first_position = 1;
  ASSERT_TRUE(NewCpuOps(1)->EmbedBackward(a).ok());
  EXPECT_EQ(dtable, (Floats{1003, 4, 7, 8, 6, 8}));
  EXPECT_EQ(dpositions, (Floats{2000, 0, 6, 8, 10, 12}));
}

struct Gradients {
  Floats dtable, dpositions;

  Gradients(int threads, int64_t batch, const Ids& ids, const Floats& all_dy)
      : dtable(kVocabulary * kFeatures), dpositions(kContext * kFeatures) {
    for (int64_t first = 0; first < kSamples; first += batch) {
      EmbeddingBackward a;
      a.ids = View(DType::kI32, {batch, kContext}, ids.data() + first * kContext);
      a.dy = View(DType::kF32, {batch, kContext, kFeatures},
                  all_dy.data() + first * kContext * kFeatures);
      a.dtable = dtable.data();
      a.dpositions = dpositions.data();
      a.vocabulary = kVocabulary;
      a.features = kFeatures;
      EXPECT_TRUE(NewCpuOps(threads)->EmbedBackward(a).ok());
    }
  }

  static constexpr int64_t kSamples = 6, kContext = 50, kFeatures = 67, kVocabulary = 11;
};

TEST(EmbeddingTest, GradientsDependNeitherOnThreadsNorOnTheDivisionOfABatch) {
  Ids ids(Gradients::kSamples * Gradients::kContext);
  RandomStream random(1);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(Gradients::kVocabulary));
  const Floats dy = RandomFloats(ids.size() * Gradients::kFeatures, 2);
  const Gradients one(1, 6, ids, dy), three(3, 6, ids, dy), divided(2, 2, ids, dy);
  EXPECT_EQ(one.dtable, three.dtable);
  EXPECT_EQ(one.dpositions, three.dpositions);
  EXPECT_EQ(one.dtable, divided.dtable);
  EXPECT_EQ(one.dpositions, divided.dpositions);
}

TEST(EmbeddingTest, RowsDoNotDependOnTheThreads) {
  const Floats table = RandomFloats(11 * 67, 1), positions = RandomFloats(600 * 67, 2);
  Ids ids(1200);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7 % 11);
  Floats of_threads[2];
  for (int threads : {1, 3}) {
    TestTensor y(DType::kBF16, {2, 600, 67});
    Embedding a;
    a.ids = View(DType::kI32, {2, 600}, ids.data());
    a.table = table.data();
    a.positions = positions.data();
    a.vocabulary = 11;
    a.features = 67;
    a.y = y.view();
    ASSERT_TRUE(NewCpuOps(threads)->Embed(a).ok());
    of_threads[threads == 3] = y.Read();
  }
  EXPECT_EQ(of_threads[0], of_threads[1]);
}

}  // namespace
}  // namespace thinwire::cpu
