#include "compress/feedback/state_digest.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

uint64_t DigestOf(const std::vector<uint64_t>& rows) {
  StateDigest digest;
  for (const uint64_t row : rows) digest.Add(row);
  return digest.value();
}

std::vector<uint64_t> RandomRows(size_t n) {
  std::vector<uint64_t> rows;
  for (size_t i = 0; i < n; ++i) rows.push_back(RandomKey(7, i));
  return rows;
}

TEST(StateDigestTest, NamesTheRowThatDiffersAloneWhicheverItIs) {
  const std::vector<uint64_t> rows = RandomRows(300);
  for (size_t changed = 0; changed < rows.size(); ++changed) {
    for (int bit : {0, 31, 32, 63}) {
      std::vector<uint64_t> others = rows;
      others[changed] ^= uint64_t{1} << bit;
      ASSERT_NE(DigestOf(rows), DigestOf(others));
      EXPECT_EQ(DifferingRow(DigestOf(rows), DigestOf(others), rows.size()), changed);
      EXPECT_EQ(DifferingRow(DigestOf(others), DigestOf(rows), rows.size()), changed);
    }
  }
}

TEST(StateDigestTest, NamesNoneWhenSeveralDiffer) {
  const std::vector<uint64_t> rows = RandomRows(100);
  int named = 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    std::vector<uint64_t> others = rows;
    others[i] = RandomKey(8, i);
    others[i + 1] = RandomKey(9, i);
    ASSERT_NE(DigestOf(rows), DigestOf(others));
    named += DifferingRow(DigestOf(rows), DigestOf(others), rows.size()).has_value();
  }
  EXPECT_EQ(named, 0);  // by chance one in 2^32 / 100
}

TEST(StateDigestTest, RowsInAnotherOrderDiffer) { EXPECT_NE(DigestOf({1, 2}), DigestOf({2, 1})); }

}  // namespace
}  // namespace thinwire
