#include "config/experiment.h"
#include "coordinator/run/resumable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSteps = 4;  // of an epoch

Experiment With(const std::vector<std::string>& overrides) {
  return *ParseExperiment(R"(
model: {name: resnet8, width: 4}
data: {name: digits}
optimizer: {lr: 0.05}
lr_schedule: {name: cosine}
pipeline: {cuts: [layer2]}
epochs: 4
)",
                          "f.yaml", overrides);
}

std::vector<std::string> Lines(const Experiment& then, const Experiment& now, uint64_t step) {
  const auto lines = NewCourse(then, now, step, kSteps);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return lines.ok() ? *lines : std::vector<std::string>{"error"};
}

TEST(NewCourseTest, NothingIsSaidOfWhatStays) {
  EXPECT_THAT(Lines(With({}), With({}), 3), IsEmpty());
  EXPECT_THAT(Lines(With({}), With({"lr_schedule.t_max=4"}), 3), IsEmpty());
}

TEST(NewCourseTest, AScheduleThatFollowsTheEpochsIsToldWithItsNextRate) {
  EXPECT_THAT(Lines(With({}), With({"epochs=8"}), 16),
              ElementsAre("goes on with lr_schedule.t_max 8 (so far 4), epochs 8 (so far 4)",
                          "epochs 1 to 4 had another learning rate schedule; step 17, of epoch 5, "
                          "trains at 0.025, the step before trained at 0.00732233"));
}

TEST(NewCourseTest, WithinAnEpochStepsAreCounted) {
  const auto lines = Lines(With({}), With({"optimizer.lr=0.1"}), 2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(
      lines[1],
      "steps 1 to 2 had another learning rate schedule; step 3, of epoch 1, trains at 0.1, the "
      "step before trained at 0.05");
}

TEST(NewCourseTest, OtherFieldsAloneChangeNoRate) {
  EXPECT_THAT(Lines(With({}), With({"pipeline.stages=1"}), 16),
              ElementsAre("goes on with pipeline.stages 1 (so far 2)"));
  EXPECT_THAT(Lines(With({}), With({"lr_schedule.t_max=8"}), 16),
              // No step is left, so no rate is named.
              ElementsAre("goes on with lr_schedule.t_max 8 (so far 4)"));
}

}  // namespace
}  // namespace thinwire
