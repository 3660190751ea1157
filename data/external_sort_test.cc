#include "data/external_sort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

std::vector<std::pair<uint64_t, uint64_t>> Sorted(
    const std::vector<std::pair<uint64_t, uint64_t>>& records, size_t in_memory) {
  ExternalSort sort(testing::TempDir(), in_memory);
  absl::Status status;
  for (const auto& [key, value] : records) status.Update(sort.Add({key, value}));
  std::vector<std::pair<uint64_t, uint64_t>> sorted;
  status.Update(sort.HandOn([&sorted](const SortRecord& record) {
    sorted.emplace_back(record.key, record.value);
    return absl::OkStatus();
  }));
  EXPECT_TRUE(status.ok()) << status;
  return sorted;
}

TEST(ExternalSortTest, RunsInAFileAreMergedToWhatMemoryWouldHold) {
  RandomStream random(RandomKey(1, "sort"));
  for (const size_t count : {0, 1, 99, 100, 101, 5000}) {
    std::vector<std::pair<uint64_t, uint64_t>> records(count);
    for (auto& [key, value] : records) key = random.Below(50), value = random.Next();
    auto wanted = records;
    std::sort(wanted.begin(), wanted.end());
    for (const size_t in_memory : {size_t{1}, size_t{100}, size_t{1} << 20}) {
      EXPECT_EQ(Sorted(records, in_memory), wanted) << count << " " << in_memory;
    }
  }
}

TEST(ExternalSortTest, AnErrorOfTheTakerIsHandedOn) {
  for (const size_t in_memory : {1, 100}) {
    ExternalSort sort(testing::TempDir(), in_memory);
    for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(sort.Add({i, i}).ok());
    const auto status = sort.HandOn([](const SortRecord& record) {
      return record.key < 5 ? absl::OkStatus() : absl::InvalidArgumentError("five");
    });
    EXPECT_EQ(status.message(), "five");
  }
}

TEST(ExternalSortTest, AFolderThatIsNoneIsAnErrorOnceItIsNeeded) {
  ExternalSort sort("/none/here", /*in_memory=*/2);
  EXPECT_TRUE(sort.Add({1, 1}).ok());
  EXPECT_TRUE(sort.Add({2, 2}).ok());
  EXPECT_FALSE(sort.Add({3, 3}).ok());
}

}  // namespace
}  // namespace thinwire
