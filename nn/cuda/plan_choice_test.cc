#include "nn/cuda/plan_choice.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire::cuda {
namespace {

// A plan that takes a given time, or fails with an error.
struct Fake {
  float milliseconds = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
};
constexpr Fake kBroken = {0, absl::StatusCode::kInternal};
constexpr Fake kTooLarge = {0, absl::StatusCode::kResourceExhausted};

// Offers `plans` until no further one is wanted; *tried is the number of those offered.
PlanChoice<Fake> Offered(Take take, const std::vector<Fake>& plans, size_t* tried) {
  PlanChoice<Fake> choice(take, [](const Fake& plan, float* milliseconds) {
    *milliseconds = plan.milliseconds;
    return plan.code == absl::StatusCode::kOk ? Error{} : MakeError(plan.code, "a fake's");
  });
  *tried = 0;
  for (const Fake& plan : plans) {
    ++*tried;
    if (choice.Offer(plan)) break;
  }
  return choice;
}

TEST(PlanChoiceTest, TheFirstIsTakenHoweverSlow) {
  size_t tried = 0;
  auto choice = Offered(Take::kFirst, {{9}, {1}}, &tried);
  EXPECT_EQ(tried, 1u);
  ASSERT_TRUE(choice.chosen().has_value());
  EXPECT_EQ(choice.chosen()->milliseconds, 9);
}

TEST(PlanChoiceTest, AfterOneThatFailsTheNextIsTaken) {
  size_t tried = 0;
  auto choice = Offered(Take::kFirst, {kBroken, kBroken, {5}, {1}}, &tried);
  EXPECT_EQ(tried, 3u);
  ASSERT_TRUE(choice.chosen().has_value());
  EXPECT_EQ(choice.chosen()->milliseconds, 5);
}

// Another process, with enough memory, would take the one that failed.
TEST(PlanChoiceTest, ShortOfMemoryTheFirstIsNotTheNext) {
  size_t tried = 0;
  auto choice = Offered(Take::kFirst, {kTooLarge, {1}}, &tried);
  EXPECT_EQ(tried, 1u);
  EXPECT_FALSE(choice.chosen().has_value());
  EXPECT_TRUE(choice.IsShortOfMemory());
  EXPECT_STREQ(choice.error().message, "a fake's");
}

TEST(PlanChoiceTest, OfAllTheFastestIsTaken) {
  size_t tried = 0;
  auto choice = Offered(Take::kFastest, {{9}, kBroken, {2}, kTooLarge, {5}}, &tried);
  EXPECT_EQ(tried, 5u);
  ASSERT_TRUE(choice.chosen().has_value());
  EXPECT_EQ(choice.chosen()->milliseconds, 2);
}

TEST(PlanChoiceTest, WhereAllFailNoneIsTakenAndTheLastErrorIsKept) {
  size_t tried = 0;
  auto choice = Offered(Take::kFastest, {kTooLarge, kBroken}, &tried);
  EXPECT_EQ(tried, 2u);
  EXPECT_FALSE(choice.chosen().has_value());
  EXPECT_FALSE(choice.IsShortOfMemory());
  EXPECT_FALSE(choice.error().ok());
}

}  // namespace
}  // namespace thinwire::cuda
