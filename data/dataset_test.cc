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

TEST(AllDatasetsTest, SaysOfDigitsWhatTheLoaderSays) {
  const DatasetInfo digits = AllDatasets()[1];
  DataOptions options;
  options.name = digits.name;
  const absl::StatusOr<DataSplits> splits = LoadData(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(digits.sample, splits->train->sample_shape());
  EXPECT_EQ(digits.classes, splits->train->classes());
  EXPECT_EQ(digits.train_samples, splits->train->size());
  EXPECT_EQ(digits.test_samples, splits->test->size());
  EXPECT_FALSE(digits.has_folder);
}

TEST(AllDatasetsTest, Cifar10IsTenClassesOfColourImages) {
  const DatasetInfo cifar10 = AllDatasets()[0];
  EXPECT_EQ(cifar10.name, "cifar10");
  EXPECT_EQ(cifar10.sample, (Shape{1, 32, 32, 3}));
  EXPECT_EQ(cifar10.classes, 10);
  EXPECT_EQ(cifar10.train_samples, 50000);
  EXPECT_EQ(cifar10.test_samples, 10000);
  EXPECT_TRUE(cifar10.has_folder);
}

TEST(LoadDataTest, UnknownNameIsRefusedWithTheNamesThereAre) {
  DataOptions options;
  options.name = "mnist";
  const absl::Status status = LoadData(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "data: unknown \"mnist\", nearest is \"digits\" (want one of cifar10, digits)");
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
