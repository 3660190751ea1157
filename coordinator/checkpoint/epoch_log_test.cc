#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"
#include "coordinator/checkpoint/folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

EpochRecord Epoch(uint32_t epoch, double loss) {
  EpochRecord record;
  record.set_epoch(epoch);
  record.mutable_train()->set_loss(loss);
  return record;
}

class EpochLogTest : public ::testing::Test {
 protected:
  EpochLogTest() { std::filesystem::create_directories(folder_); }
  ~EpochLogTest() override { std::filesystem::remove_all(folder_); }

  // Returns the losses that are read back.
  std::vector<double> Losses(const EpochsKept& kept) const {
    const auto epochs = ReadEpochs(folder_, kept);
    EXPECT_TRUE(epochs.ok()) << epochs.status();
    std::vector<double> losses;
    for (const EpochRecord& epoch : *epochs) losses.push_back(epoch.train().loss());
    return losses;
  }
  std::string Refusal(const EpochsKept& kept) const {
    const absl::Status status = ReadEpochs(folder_, kept).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  }
  uint64_t Bytes() const { return std::filesystem::file_size(path_); }

  const std::string folder_ = ::testing::TempDir() + "/epoch_log_test";
  const std::string path_ = folder_ + "/" + kEpochLog;
};

TEST_F(EpochLogTest, EachCheckpointKeepsTheEpochsBeforeIt) {
  EpochLog log(folder_, {});
  ASSERT_TRUE(log.Append({}).ok());
  const EpochsKept none = log.kept();
  ASSERT_TRUE(log.Append({Epoch(1, 0.1 + 0.2)}).ok());
  const EpochsKept one = log.kept();
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(log.Append({Epoch(2, -infinity), Epoch(3, 3)}).ok());
  EXPECT_TRUE(Losses(none).empty());
  EXPECT_EQ(Losses(one), std::vector<double>({0.1 + 0.2}));
  EXPECT_EQ(Losses(log.kept()), std::vector<double>({0.1 + 0.2, -infinity, 3}));
}

TEST_F(EpochLogTest, WhatIsWrittenIsOfTheNewEpochsSize) {
  EpochLog log(folder_, {});
  ASSERT_TRUE(log.Append({Epoch(1, 1)}).ok());
  const uint64_t first = Bytes();
  for (uint32_t epoch = 2; epoch <= 9; ++epoch) ASSERT_TRUE(log.Append({Epoch(epoch, 1)}).ok());
  EXPECT_EQ(Bytes(), 9 * first);
}

TEST_F(EpochLogTest, ARunThatGoesOnFromAnEarlierCheckpointDropsTheRest) {
  EpochLog before(folder_, {});
  ASSERT_TRUE(before.Append({Epoch(1, 1)}).ok());
  const EpochsKept one = before.kept();
  ASSERT_TRUE(before.Append({Epoch(2, 2), Epoch(3, 3)}).ok());
  EpochLog again(folder_, one);
  ASSERT_TRUE(again.Append({Epoch(2, 20)}).ok());
  EXPECT_EQ(Losses(again.kept()), std::vector<double>({1, 20}));
  EXPECT_EQ(Bytes(), again.kept().bytes());
}

TEST_F(EpochLogTest, WhatWasLostOrChangedIsTold) {
  EpochLog log(folder_, {});
  ASSERT_TRUE(log.Append({Epoch(1, 1), Epoch(2, 2)}).ok());
  const std::string whole = *ReadFile(path_);
  std::string changed = whole;
  changed[whole.find("2")] = '7';
  ASSERT_TRUE(ReplaceFile(path_, changed).ok());
  EXPECT_THAT(Refusal(log.kept()), AllOf(HasSubstr(path_), HasSubstr("CRC-32C")));
  ASSERT_TRUE(ReplaceFile(path_, whole.substr(0, whole.size() - 1)).ok());
  const std::string wanted = absl::StrCat(" bytes, want at least ", whole.size());
  EXPECT_THAT(Refusal(log.kept()), HasSubstr(wanted));
  EXPECT_THAT(std::string(log.Append({Epoch(3, 3)}).message()), HasSubstr(wanted));
  std::filesystem::remove(path_);
  EXPECT_THAT(Refusal(log.kept()), HasSubstr("0" + wanted));
}

}  // namespace
}  // namespace thinwire
