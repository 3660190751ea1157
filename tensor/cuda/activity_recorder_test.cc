// Records with fake_cupti_testing.cc, which is found as the real one is.
#include "tensor/cuda/activity_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = DeviceActivity::Kind;

int64_t SteadyNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class ActivityRecorderTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("LD_LIBRARY_PATH", "tensor/cuda/fake_cupti", /*overwrite=*/1); }

  std::unique_ptr<ActivityRecorder> New(size_t most) {
    ActivityRecorder* recorder = nullptr;
    const Error error = NewCuptiRecorder(most, Finish(), &recorder);
    EXPECT_TRUE(error.ok()) << error.message;
    return std::unique_ptr<ActivityRecorder>(recorder);
  }
  std::vector<DeviceActivity> Stop(ActivityRecorder* recorder) {
    size_t kept = 0;
    const Error error = recorder->Stop(&kept, &dropped_);
    EXPECT_TRUE(error.ok()) << error.message;
    std::vector<DeviceActivity> activities(kept);
    recorder->Copy(activities.data());
    return activities;
  }

  // Returns what counts its calls, and fails as the test says.
  std::function<Error()> Finish() {
    return [this] {
      ++finished_;
      return finish_error_;
    };
  }

  uint64_t dropped_ = 0;
  int finished_ = 0;
  Error finish_error_;
};

TEST_F(ActivityRecorderTest, ActivitiesAreOnTheMonotonicClock) {
  const auto recorder = New(100);
  const int64_t before = SteadyNow();
  ASSERT_TRUE(recorder->Start().ok());
  const int64_t started = SteadyNow();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int64_t stops = SteadyNow();
  const std::vector<DeviceActivity> all = Stop(recorder.get());
  const int64_t stopped = SteadyNow();
  ASSERT_EQ(all.size(), 6u);
  constexpr int64_t kNoise = 1'000'000;  // of readings on a busy machine
  EXPECT_GE(all.front().begin, before - kNoise);
  EXPECT_LE(all.front().begin, started + kNoise);
  // Its clock goes by half faster: without a second comparison this end lay 10 ms later.
  EXPECT_GE(all.back().end, stops - kNoise);
  EXPECT_LE(all.back().end, stopped + kNoise);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].begin, all[i - 1].begin);
}

TEST_F(ActivityRecorderTest, ActivitiesHaveKindStreamAndAmount) {
  const auto recorder = New(100);
  ASSERT_TRUE(recorder->Start().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<std::string> said;
  for (const DeviceActivity& activity : Stop(recorder.get())) {
    EXPECT_LT(activity.begin, activity.end);
    said.push_back(std::to_string(static_cast<int>(activity.kind)) + " " +
                   std::to_string(activity.stream) + " " + std::to_string(activity.amount) + " " +
                   activity.name);
  }
  EXPECT_THAT(said, ElementsAre("0 7 8 Softmax<float>", "0 13 8 cutlass_gemm", "1 7 4096 ",
                                "3 21 4096 ", "4 7 64 ", "2 7 4096 "));
  EXPECT_EQ(dropped_, 1u + 2u);  // one had not ended, two CUPTI had no room for
}

TEST_F(ActivityRecorderTest, KeepsAsManyAsItHasRoomForAndCountsTheRest) {
  const auto recorder = New(3);
  ASSERT_TRUE(recorder->Start().ok());
  EXPECT_EQ(Stop(recorder.get()).size(), 3u);
  EXPECT_EQ(dropped_, 1u + 2u + 3u);
  ASSERT_TRUE(recorder->Start().ok());  // anew
  EXPECT_EQ(Stop(recorder.get()).size(), 3u);
  EXPECT_EQ(dropped_, 1u + 2u + 3u);
}

TEST_F(ActivityRecorderTest, WaitsForTheGpuBeforeItStops) {
  const auto recorder = New(100);
  EXPECT_EQ(finished_, 0) << "nothing was recorded yet";
  ASSERT_TRUE(recorder->Start().ok());
  Stop(recorder.get());
  EXPECT_EQ(finished_, 1);
  ASSERT_TRUE(recorder->Start().ok());
  finish_error_ = MakeError(absl::StatusCode::kInternal, "the device is lost");
  size_t kept = 9;
  EXPECT_STREQ(recorder->Stop(&kept, &dropped_).message, "the device is lost");
  EXPECT_EQ(kept, 0u);
  finish_error_ = Error{};
  EXPECT_TRUE(recorder->Start().ok()) << "the recording goes on";
}

TEST_F(ActivityRecorderTest, OneRecordsAtATime) {
  auto one = New(3);
  const auto other = New(3);
  ASSERT_TRUE(one->Start().ok());
  EXPECT_NE(New(3), nullptr);  // of a run to come
  EXPECT_EQ(one->Start().code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(other->Start().message, HasSubstr("another recording goes on"));
  size_t kept = 9;
  EXPECT_THAT(other->Stop(&kept, &dropped_).message, HasSubstr("nothing is recorded"));
  EXPECT_EQ(kept, 0u);
  one.reset();
  EXPECT_TRUE(other->Start().ok());
}

TEST_F(ActivityRecorderTest, SaysWhatCuptiRefuses) {
  const auto recorder = New(3);
  setenv("THINWIRE_FAKE_CUPTI_REFUSES", "1", /*overwrite=*/1);
  EXPECT_STREQ(recorder->Start().message, "CUPTI: cuptiActivityEnable: CUPTI_ERROR_FAKE (999)");
  ActivityRecorder* other = nullptr;
  EXPECT_EQ(NewCuptiRecorder(3, Finish(), &other).code,
            static_cast<int>(absl::StatusCode::kUnavailable));
  unsetenv("THINWIRE_FAKE_CUPTI_REFUSES");
  EXPECT_TRUE(recorder->Start().ok());
}

constexpr int64_t kFar = 1'700'000'000'000'000'000;  // a clock that counts from 1970

TEST(ClockMapTest, TimesAtBothComparisonsAreExact) {
  const ClockPair first = {kFar, 5000}, last = {kFar + 1'000'000'000, 1'000'105'000};
  EXPECT_EQ(OnOurClock(first.theirs, first, last), first.ours);
  EXPECT_EQ(OnOurClock(last.theirs, first, last), last.ours);
}

TEST(ClockMapTest, DriftIsSpreadBetweenThem) {
  const ClockPair first = {kFar, 5000}, last = {kFar + 1'000'000'000, 1'000'105'000};
  EXPECT_EQ(OnOurClock(kFar + 500'000'000, first, last), 500'055'000);
  EXPECT_EQ(OnOurClock(kFar + 1, first, last), 5001);
}

TEST(ClockMapTest, OutsideBothClocksGoAlike) {
  const ClockPair first = {kFar, 5000}, last = {kFar + 100, 5200};
  EXPECT_EQ(OnOurClock(kFar - 50, first, last), 4950);
  EXPECT_EQ(OnOurClock(kFar + 150, first, last), 5250);
}

TEST(ClockMapTest, AClockThatStoodOrWasSetBackIsComparedOnce) {
  EXPECT_EQ(OnOurClock(kFar + 7, {kFar, 5000}, {kFar, 9000}), 5007);
  EXPECT_EQ(OnOurClock(kFar + 7, {kFar, 5000}, {kFar - 100, 9000}), 5007);
}

}  // namespace
}  // namespace thinwire
