#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(LoadDataTest, FindsDataByItsName) {
  DataOptions options;
  options.name = "digits";
  const absl::StatusOr<DataSplits> splits = LoadData(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 3823);
  EXPECT_EQ(splits->test->size(), 1797);
}

TEST(LoadDataTest, UnknownNameIsRefusedWithTheNamesThereAre) {
  DataOptions options;
  options.name = "mnist";
  const absl::Status status = LoadData(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "unknown data 'mnist': there are cifar10 and digits");
}

TEST(LoadDataTest, NegativeLimitIsRefused) {
  DataOptions options;
  options.name = "digits";
  options.limit = -1;
  const absl::Status status = LoadData(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit is -1"));
}

}  // namespace
}  // namespace thinwire
