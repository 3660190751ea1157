#include "stage_server/run_data.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

class RunDataTest : public ::testing::Test {
 protected:
  RunData::Splits Of(const std::string& run, const std::string& name) {
    DataConfig config;
    config.set_name(name);
    const auto read = [this]() -> absl::StatusOr<DataSplits> {
      ++reads_;
      return DataSplits();
    };
    return *data_.Of(run, config, read);
  }

  RunData data_;
  int reads_ = 0;
};

TEST_F(RunDataTest, AreReadOncePerRunAndConfiguration) {
  const RunData::Splits first = Of("one", "digits");
  EXPECT_EQ(Of("one", "digits"), first);
  EXPECT_EQ(reads_, 1);
  EXPECT_NE(Of("one", "cifar10"), first);
  EXPECT_EQ(reads_, 2);
  Of("other", "cifar10");
  EXPECT_EQ(reads_, 3);
}

TEST_F(RunDataTest, AreForgottenWithTheirRunButNotTakenFromWhoUsesThem) {
  const RunData::Splits used = Of("one", "digits");
  data_.ForgetOthers("one");
  EXPECT_EQ(Of("one", "digits"), used);
  data_.ForgetOthers("other");
  EXPECT_NE(Of("one", "digits"), used);
  data_.Forget();
  EXPECT_EQ(used.use_count(), 1);
  Of("one", "digits");
  EXPECT_EQ(reads_, 3);
}

TEST_F(RunDataTest, WhatIsForgottenWhileItIsReadIsNotHeld) {
  const auto read = [this]() -> absl::StatusOr<DataSplits> {
    data_.Forget();
    return DataSplits();
  };
  const RunData::Splits splits = *data_.Of("one", DataConfig(), read);
  ASSERT_NE(splits, nullptr);
  EXPECT_EQ(splits.use_count(), 1);
}

TEST_F(RunDataTest, AnErrorLeavesNothing) {
  Of("one", "digits");
  DataConfig other;
  other.set_name("cifar10");
  const auto fails = []() -> absl::StatusOr<DataSplits> { return absl::NotFoundError("no file"); };
  EXPECT_TRUE(absl::IsNotFound(data_.Of("one", other, fails).status()));
  Of("one", "digits");
  EXPECT_EQ(reads_, 2);
}

}  // namespace
}  // namespace thinwire
