#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/run/training_reports.h"

namespace thinwire {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

StepReport Step(uint64_t number, const std::vector<double>& losses, uint32_t correct,
                double seconds, uint64_t labels = 10) {
  StepReport step;
  step.set_step(number);
  step.set_samples(10);
  step.set_labels(labels);
  step.set_loss(7);
  step.set_correct(correct);
  step.set_seconds(seconds);
  *step.mutable_replica_losses() = {losses.begin(), losses.end()};
  return step;
}

TrafficRecord Traffic(uint64_t step, uint64_t messages, double error) {
  TrafficRecord traffic;
  traffic.set_step(step);
  traffic.set_boundary("stem");
  traffic.set_direction("gradients");
  traffic.set_raw_bytes(100 * messages);
  traffic.set_wire_bytes(10 * messages);
  traffic.set_messages(messages);
  traffic.set_relative_error(error);
  return traffic;
}

TEST(CarrierReportsTest, AStepIsWholeWhenAllCarriersHaveCome) {
  CarrierReports reports({/*stages=*/1, /*grid=*/{3, 1}});
  EXPECT_FALSE(reports.Add(2, Step(1, {}, 0, 0.25, /*labels=*/0)));
  EXPECT_FALSE(reports.Add(0, Step(1, {1, 1e-16}, 3, 0.5)));
  EXPECT_FALSE(reports.Add(0, Step(2, {1, 1}, 3, 0.5)));  // ahead of the others
  const std::optional<StepReport> whole = reports.Add(1, Step(1, {-1}, 4, 0.125));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->step(), 1u);
  EXPECT_EQ(whole->loss(), ((0.0 + 1 + 1e-16) + -1) / 20);  // added as one carrier adds
  EXPECT_EQ(whole->correct(), 7u);
  EXPECT_EQ(whole->labels(), 20u);
  EXPECT_EQ(whole->samples(), 10u);
  EXPECT_EQ(whole->seconds(), 0.5);
  EXPECT_EQ(whole->replica_losses_size(), 0);
}

TEST(CarrierReportsTest, OfOneCarrierAllIsAsItCame) {
  CarrierReports reports({/*stages=*/2, /*grid=*/{1, 1}});
  EXPECT_EQ(reports.Add(0, Step(1, {1}, 3, 0.5))->loss(), 7);
  EXPECT_THAT(reports.Add(/*server=*/0, {Traffic(1, 2, 0.5)}), SizeIs(1));
  EXPECT_THAT(reports.Rest(), IsEmpty());
}

TEST(CarrierReportsTest, OnlyTheFirstCarrierOfARowTellsOfSteps) {
  CarrierReports reports({/*stages=*/1, /*grid=*/{1, 2}});
  EXPECT_EQ(reports.Add(0, Step(1, {1}, 3, 0.5))->loss(), 7);
  EXPECT_FALSE(reports.Add(1, Step(1, {1}, 3, 0.5)));
}

TEST(CarrierReportsTest, TrafficIsAddedByStepAndTheLastMayBeOfSome) {
  CarrierReports reports({/*stages=*/2, /*grid=*/{2, 1}});
  EXPECT_THAT(reports.Add(/*server=*/1, {Traffic(1, 3, 0.5), Traffic(2, 3, 0.5)}), IsEmpty());
  const std::vector<TrafficRecord> whole = reports.Add(/*server=*/3, {Traffic(1, 1, 0.1)});
  ASSERT_THAT(whole, SizeIs(1));
  EXPECT_EQ(whole[0].step(), 1u);
  EXPECT_EQ(whole[0].messages(), 4u);
  EXPECT_EQ(whole[0].raw_bytes(), 400u);
  EXPECT_EQ(whole[0].wire_bytes(), 40u);
  EXPECT_NEAR(whole[0].relative_error(), 0.4, 1e-12);
  const std::vector<TrafficRecord> rest = reports.Rest();
  ASSERT_THAT(rest, SizeIs(1));
  EXPECT_EQ(rest[0].step(), 2u);
  EXPECT_THAT(reports.Rest(), IsEmpty());
}

TEST(CarrierReportsTest, WhatReplicasExchangeIsAddedOverAllServers) {
  CarrierReports reports({/*stages=*/3, /*grid=*/{1, 1}});
  const auto exchanged = [](uint64_t messages, double error) {
    TrafficRecord traffic = Traffic(1, messages, error);
    traffic.set_boundary("replicas");
    traffic.set_direction("contributions");
    return traffic;
  };
  EXPECT_THAT(reports.Add(/*server=*/2, {exchanged(1, 0.25)}), IsEmpty());
  EXPECT_THAT(reports.Add(/*server=*/0, {exchanged(2, 0.5)}), IsEmpty());
  const std::vector<TrafficRecord> whole = reports.Add(/*server=*/1, {exchanged(1, 0.75)});
  ASSERT_THAT(whole, SizeIs(1));
  EXPECT_EQ(whole[0].boundary(), "replicas");
  EXPECT_EQ(whole[0].messages(), 4u);
  EXPECT_EQ(whole[0].wire_bytes(), 40u);
  EXPECT_NEAR(whole[0].relative_error(), 0.5, 1e-12);
  EXPECT_THAT(reports.Rest(), IsEmpty());
  // A stage that has no parameters exchanges nothing.
  EXPECT_THAT(reports.Add(/*server=*/0, {exchanged(2, 0.5)}), IsEmpty());
  EXPECT_THAT(reports.Rest(), SizeIs(1));
}

}  // namespace
}  // namespace thinwire
