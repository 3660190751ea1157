#include "stage_server/uploads.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace thinwire {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class UploadsTest : public ::testing::Test {
 protected:
  UploadsTest() { uploads_.set_patience(kPatience); }

  auto Begin() {
    return uploads_.Begin([this] { ++cancels_; }, start_);
  }

  const SteadyTime start_ = SteadyTime() + absl::Seconds(1000);
  Uploads uploads_;
  int cancels_ = 0;
};

TEST_F(UploadsTest, AFifthIsLetInWhenOneOfFourHasEnded) {
  std::vector<std::unique_ptr<Uploads::Upload>> four;
  for (int i = 0; i < 4; ++i) four.push_back(*Begin());
  const absl::Status refused =
      absl::ResourceExhaustedError("4 calls that send files are under way, want fewer");
  EXPECT_EQ(Begin().status(), refused);
  four[1]->HasOpened();  // it goes on
  EXPECT_EQ(Begin().status(), refused);
  four.pop_back();
  EXPECT_TRUE(Begin().ok());
}

TEST_F(UploadsTest, OneThatDoesNotBeginInTimeIsCancelled) {
  const auto silent = Begin(), begun = Begin();
  (*begun)->HasOpened();
  uploads_.CancelLate(start_ + kPatience);
  EXPECT_EQ(cancels_, 0);
  uploads_.CancelLate(start_ + kPatience + absl::Nanoseconds(1));
  EXPECT_EQ(cancels_, 1);
}

TEST_F(UploadsTest, OneThatHasEndedIsNotCancelled) {
  EXPECT_TRUE(Begin().ok());
  uploads_.CancelLate(start_ + 2 * kPatience);
  EXPECT_EQ(cancels_, 0);
}

TEST_F(UploadsTest, TheEndCancelsThoseThatHaveNotBegunAndLetsNoneIn) {
  const auto silent = Begin(), begun = Begin();
  (*begun)->HasOpened();
  uploads_.Stop();
  EXPECT_EQ(cancels_, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(Begin().status()));
}

}  // namespace
}  // namespace thinwire
