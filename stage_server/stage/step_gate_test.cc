#include "stage_server/stage/step_gate.h"

#include <gtest/gtest.h>

#include <thread>

namespace thinwire {
namespace {

TEST(StepGateTest, StepsBeginAsLongAsNobodyAsks) {
  StepGate gate;
  EXPECT_EQ(gate.Hold(), 0u);
  StepGate other;
  EXPECT_TRUE(other.Enter(1));
  EXPECT_TRUE(other.Enter(2));
  EXPECT_EQ(other.Hold(), 2u);
}

TEST(StepGateTest, AHeldStageGoesOnToTheStepThatIsSaidAndNoFurther) {
  StepGate gate;
  ASSERT_TRUE(gate.Enter(1));
  ASSERT_EQ(gate.Hold(), 1u);
  bool second = false, third = true;
  std::thread trains([&] {
    second = gate.Enter(2);
    third = gate.Enter(3);
  });
  EXPECT_TRUE(gate.EndAfter(2));
  trains.join();
  EXPECT_TRUE(second);
  EXPECT_FALSE(third);
}

TEST(StepGateTest, AStepThatHasBegunIsNotTakenBack) {
  StepGate gate;
  ASSERT_TRUE(gate.Enter(3));
  EXPECT_FALSE(gate.EndAfter(2));
  EXPECT_TRUE(gate.EndAfter(3));
  EXPECT_FALSE(gate.Enter(4));
}

TEST(StepGateTest, AnOpenGateHoldsNobody) {
  StepGate gate;
  ASSERT_TRUE(gate.Enter(1));
  gate.Hold();
  bool entered = false;
  std::thread trains([&] { entered = gate.Enter(2); });
  gate.Open();
  trains.join();
  EXPECT_TRUE(entered);
}

}  // namespace
}  // namespace thinwire
