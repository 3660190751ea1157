#include "stage_server/stage/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> IntsOf(const Tensor& tensor) {
  const auto* const data = static_cast<const int32_t*>(tensor.data());
  return {data, data + tensor.elements()};
}

TEST(DocumentsTest, BeginWhereTheyAreSaidToBeginAndAtEachSample) {
  const PackedDocuments documents = *DocumentsOf({2, 3, 9}, 3, 5, {0, 5}, CpuDevice());
  EXPECT_EQ(documents.first.shape(), (Shape{3, 5}));
  EXPECT_THAT(IntsOf(documents.first), ElementsAre(0, 0, 2, 3, 3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0));
  EXPECT_THAT(IntsOf(documents.place), ElementsAre(0, 1, 0, 0, 1, 0, 1, 2, 3, 0, 0, 1, 2, 3, 4));
}

TEST(DocumentsTest, OfSlicesAreThoseOfTheWholeSamples) {
  const PackedDocuments documents = *DocumentsOf({1, 4, 7}, 2, 5, {2, 4}, CpuDevice());
  EXPECT_EQ(documents.place.shape(), (Shape{2, 2}));
  EXPECT_THAT(IntsOf(documents.first), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(IntsOf(documents.place), ElementsAre(1, 2, 0, 1));
}

TEST(DocumentsTest, WithoutStartsEachSampleIsOne) {
  const PackedDocuments documents = *DocumentsOf({}, 2, 3, {0, 3}, CpuDevice());
  EXPECT_THAT(IntsOf(documents.first), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(IntsOf(documents.place), ElementsAre(0, 1, 2, 0, 1, 2));
}

}  // namespace
}  // namespace thinwire
