#include "coordinator/fleet/answer_times.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(AnswerTimes, AServerThatHasSaidNothingHasTenSeconds) {
  EXPECT_EQ(AnswerTimes().Patience("a:1"), absl::Seconds(10));
}

TEST(AnswerTimes, OneThatAlwaysAnswersAtOnceHasHalfASecond) {
  AnswerTimes times;
  for (int i = 0; i < 100; ++i) times.Add("a:1", absl::Milliseconds(2), SteadyTime());
  EXPECT_EQ(times.Patience("a:1"), absl::Seconds(0.5));
  EXPECT_EQ(times.Patience("b:1"), absl::Seconds(10));
}

TEST(AnswerTimes, ASlowAnswerIsForgottenSlowly) {
  AnswerTimes times;
  for (int i = 0; i < 100; ++i) times.Add("a:1", absl::Milliseconds(2), SteadyTime());
  times.Add("a:1", absl::Seconds(0.5), SteadyTime());
  EXPECT_EQ(times.Patience("a:1"), absl::Seconds(4));
  for (int i = 0; i < 23; ++i) times.Add("a:1", absl::Milliseconds(2), SteadyTime());
  EXPECT_GT(times.Patience("a:1"), absl::Seconds(1.9));
  EXPECT_LT(times.Patience("a:1"), absl::Seconds(2.1));
}

TEST(AnswerTimes, NoServerHasMoreThanTenSeconds) {
  AnswerTimes times;
  times.Add("a:1", absl::Seconds(9), SteadyTime());
  EXPECT_EQ(times.Patience("a:1"), absl::Seconds(10));
}

TEST(AnswerTimes, OneThatWasLostByMistakeHasTwiceTheTime) {
  const auto at = [](double seconds) { return SteadyTime() + absl::Seconds(seconds); };
  AnswerTimes times;
  for (int i = 0; i < 100; ++i) times.Add("a:1", absl::Milliseconds(2), at(0.25 * i));
  times.Lose("a:1", at(30));
  times.Add("a:1", absl::Milliseconds(2), at(41));
  EXPECT_EQ(times.Patience("a:1"), absl::Seconds(0.5)) << "it was away for long";
  for (const double seconds : {1, 2, 4, 8, 10, 10}) {
    times.Lose("a:1", at(50));
    times.Add("a:1", absl::Milliseconds(2), at(52));
    EXPECT_EQ(times.Patience("a:1"), absl::Seconds(seconds));
  }
}

}  // namespace
}  // namespace thinwire
