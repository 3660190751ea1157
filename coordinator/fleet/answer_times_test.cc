#include "coordinator/fleet/answer_times.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(AnswerTimes, AServerThatHasSaidNothingHasTenSeconds) {
  EXPECT_EQ(AnswerTimes().Patience("a:1"), absl::Seconds(10));
}

TEST(AnswerTimes, OneThatAlwaysAnswersAtOnceHasASecond) {
  AnswerTimes times;
  for (int i = 0; i < 100; ++i) times.Add("a:1", absl::Milliseconds(2));
  EXPECT_EQ(times.Patience("a:1"), absl::Seconds(1));
  EXPECT_EQ(times.Patience("b:1"), absl::Seconds(10));
}

TEST(AnswerTimes, ASlowAnswerIsForgottenSlowly) {
  AnswerTimes times;
  for (int i = 0; i < 100; ++i) times.Add("a:1", absl::Milliseconds(2));
  times.Add("a:1", absl::Seconds(0.5));
  EXPECT_EQ(times.Patience("a:1"), absl::Seconds(4));
  for (int i = 0; i < 23; ++i) times.Add("a:1", absl::Milliseconds(2));
  EXPECT_GT(times.Patience("a:1"), absl::Seconds(1.9));
  EXPECT_LT(times.Patience("a:1"), absl::Seconds(2.1));
}

TEST(AnswerTimes, NoServerHasMoreThanTenSeconds) {
  AnswerTimes times;
  times.Add("a:1", absl::Seconds(9));
  EXPECT_EQ(times.Patience("a:1"), absl::Seconds(10));
}

}  // namespace
}  // namespace thinwire
