#include "compress/cpu/index_coding.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

std::vector<uint32_t> Positions(int64_t n, uint32_t one_in, uint64_t seed) {
  RandomStream random(seed);
  std::vector<uint32_t> positions;
  for (int64_t i = 0; i < n; ++i) {
    if (random.Below(one_in) == 0) positions.push_back(static_cast<uint32_t>(i));
  }
  return positions;
}

void ExpectThereAndBack(const IndexPlan& plan, const std::vector<uint32_t>& positions, int64_t n) {
  std::vector<uint8_t> bytes(plan.bytes);
  WriteIndices(plan, positions.data(), positions.size(), n, /*threads=*/1, bytes.data());
  // Reads in two parts: entries are placed eight at a time or, behind an odd number of them, one by
  // one.
  for (size_t first : {size_t{0}, positions.size() / 24 * 8, positions.size() / 3}) {
    IndexReader reader;
    ASSERT_TRUE(reader.Open(plan, bytes.data(), positions.size(), n).ok());
    std::vector<uint32_t> read(positions.size());
    ASSERT_TRUE(reader.Read(first, read.data()).ok());
    ASSERT_TRUE(reader.Read(positions.size() - first, read.data() + first).ok());
    EXPECT_EQ(read, positions);
  }
}

TEST(IndexCodingTest, ReadsWhatItWroteAtEveryDensity) {
  for (int64_t n : {1, 7, 64, 65, 1000, 100003}) {
    for (uint32_t one_in : {1, 2, 3, 10, 100, 1000}) {
      const std::vector<uint32_t> positions = Positions(n, one_in, n + one_in);
      const IndexPlan plan = PlanIndices(positions.data(), positions.size(), n, /*threads=*/1);
      ExpectThereAndBack(plan, positions, n);
    }
  }
}

TEST(IndexCodingTest, PlansNoMoreBytesThanAnyCodingTakes) {
  const int64_t n = 4096;
  for (uint32_t one_in : {1, 2, 4, 5, 20, 500}) {
    const std::vector<uint32_t> positions = Positions(n, one_in, one_in);
    const IndexPlan plan = PlanIndices(positions.data(), positions.size(), n, /*threads=*/1);
    EXPECT_LE(plan.bytes, 512u);
    EXPECT_LE(plan.bytes, (12 * positions.size() + 7) / 8);
  }
}

TEST(IndexCodingTest, LastElementsOfAHugeTensorFit) {
  const int64_t n = kSparseMaxElements;
  const std::vector<uint32_t> positions = {0, 1u << 31, 0xFFFFFFFDu, 0xFFFFFFFEu};
  ExpectThereAndBack(PlanIndices(positions.data(), positions.size(), n, /*threads=*/1), positions,
                     n);
  ExpectThereAndBack({IndexCoding::kRice, 31, 31 + 2}, {0, 5, 7, 9, 11, 13, 15, 0xFFFFFFFEu}, n);
}

TEST(IndexReaderTest, RefusesQuotientsThatReachBeyondTheTensor) {
  const uint8_t bytes[] = {0x00, 0x01};  // gap 8
  IndexReader reader;
  uint32_t position;
  const bool read =
      reader.Open({IndexCoding::kRice, 0, 2}, bytes, 1, 8).ok() && reader.Read(1, &position).ok();
  EXPECT_FALSE(read);
  ASSERT_TRUE(reader.Open({IndexCoding::kRice, 0, 2}, bytes, 1, 9).ok());
  EXPECT_TRUE(reader.Read(1, &position).ok());
  EXPECT_EQ(position, 8u);
}

TEST(IndexReaderTest, RefusesAnotherNumberOfBits) {
  const uint8_t bytes[] = {0x05};
  IndexReader reader;
  EXPECT_TRUE(reader.Open({IndexCoding::kBitmap, 0, 1}, bytes, 2, 8).ok());
  EXPECT_FALSE(reader.Open({IndexCoding::kBitmap, 0, 1}, bytes, 1, 8).ok());
  EXPECT_FALSE(reader.Open({IndexCoding::kBitmap, 0, 1}, bytes, 3, 8).ok());
}

}  // namespace
}  // namespace thinwire
