#include "coordinator/run/boundary_totals.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

BoundaryReport* AddEnd(StageReport* report, const std::string& cut, bool gradient, bool sender) {
  BoundaryReport* end = report->add_boundaries();
  end->set_boundary(cut);
  end->set_gradient(gradient);
  end->set_sender(sender);
  return end;
}

StageReport UpstreamStage() {
  StageReport report;
  report.set_stage(0);
  BoundaryReport* sent = AddEnd(&report, "layer1", /*gradient=*/false, /*sender=*/true);
  sent->set_codec("topk(ratio=0.1, scope=sample, values=fp32)");
  sent->set_elements(100);
  sent->set_raw_bytes(400);
  sent->set_wire_bytes(50);
  sent->set_encode_seconds(1);
  sent->set_feedback("ef(key=slot, store=fp32)");
  sent->set_relative_error(0.5);
  sent->set_codec_relative_error(0.25);
  sent->set_relative_residual(0.75);
  (*report.mutable_activity_seconds())["forward"] = 3;
  AddEnd(&report, "layer1", /*gradient=*/true, /*sender=*/false)->set_decode_seconds(7);
  return report;
}

StageReport DownstreamStage() {
  StageReport report;
  report.set_stage(1);
  AddEnd(&report, "layer1", /*gradient=*/false, /*sender=*/false)->set_decode_seconds(2);
  BoundaryReport* sent = AddEnd(&report, "layer1", /*gradient=*/true, /*sender=*/true);
  sent->set_codec("none");
  sent->set_raw_bytes(400);
  sent->set_wire_bytes(410);
  (*report.mutable_activity_seconds())["backward"] = 4;
  (*report.mutable_activity_seconds())["receive_wait"] = 100;
  return report;
}

TEST(BoundaryTotalsTest, PutsBothEndsOfADirectionTogether) {
  BoundaryTotals totals({"layer1"}, {/*stages=*/2});
  totals.Update(UpstreamStage());
  totals.Update(DownstreamStage());
  ASSERT_EQ(totals.Records().size(), 1u);
  const DirectionRecord activations = totals.Records()[0].activations();
  EXPECT_EQ(activations.codec(), "topk");
  EXPECT_EQ(activations.parameters(), "topk(ratio=0.1, scope=sample, values=fp32)");
  EXPECT_EQ(activations.wire_bytes(), 50u);
  EXPECT_EQ(activations.wire_bits_per_element(), 4.0);
  EXPECT_EQ(activations.encode_seconds(), 1.0);
  EXPECT_EQ(activations.decode_seconds(), 2.0);
  EXPECT_EQ(activations.feedback(), "ef(key=slot, store=fp32)");
  EXPECT_EQ(activations.relative_error(), 0.5);
  EXPECT_EQ(activations.codec_relative_error(), 0.25);
  EXPECT_EQ(activations.relative_residual(), 0.75);
  EXPECT_EQ(totals.Records()[0].gradients().codec(), "none");
  EXPECT_FALSE(totals.Records()[0].gradients().has_relative_error()) << "none was measured";
  EXPECT_FALSE(totals.Records()[0].gradients().has_cosine());
  EXPECT_FALSE(totals.Records()[0].gradients().has_codec_relative_error());
  EXPECT_FALSE(totals.Records()[0].gradients().has_relative_residual());
  EXPECT_EQ(totals.Records()[0].gradients().decode_seconds(), 7.0);
}

TEST(BoundaryTotalsTest, OrderIsThatOfTheCutsAndUnseenCutsAreThere) {
  BoundaryTotals totals({"layer1", "layer2"}, {/*stages=*/1});
  ASSERT_EQ(totals.Records().size(), 2u);
  EXPECT_EQ(totals.Records()[1].name(), "layer2");
  EXPECT_EQ(totals.Records()[1].activations().wire_bytes(), 0u);
}

TEST(BoundaryTotalsTest, ANewerReportReplacesTheOldOne) {
  BoundaryTotals totals({"layer1"}, {/*stages=*/2});
  totals.Update(UpstreamStage());
  totals.Update(UpstreamStage());
  EXPECT_EQ(totals.Records()[0].activations().wire_bytes(), 50u);
}

TEST(BoundaryTotalsTest, BusyIsForwardAndBackwardOfAllStages) {
  BoundaryTotals totals({"layer1"}, {/*stages=*/2});
  totals.Update(UpstreamStage());
  totals.Update(DownstreamStage());
  EXPECT_EQ(totals.BusySeconds(), 7.0);
}

TEST(CompressionRatioTest, IsRawBytesOverWireBytes) {
  DirectionRecord record;
  EXPECT_EQ(CompressionRatio(record), 0.0) << "no message yet";
  record.set_raw_bytes(400);
  record.set_wire_bytes(50);
  EXPECT_EQ(CompressionRatio(record), 8.0);
}

BoundaryRecord Record(uint64_t wire_bytes, uint64_t measured, double relative_error) {
  BoundaryRecord record;
  record.set_name("layer1");
  DirectionRecord* r = record.mutable_gradients();
  r->set_raw_bytes(10 * wire_bytes);
  r->set_wire_bytes(wire_bytes);
  r->set_messages(wire_bytes);
  r->set_measured_messages(measured);
  if (measured > 0) r->set_relative_error(relative_error);
  return record;
}

TEST(EpochBoundariesTest, HasWhatTheEpochAdded) {
  BoundaryRecord after = Record(150, /*measured=*/4, /*relative_error=*/0.5);
  after.mutable_gradients()->set_level(0.25);
  const auto epoch = EpochBoundaries({Record(100, 3, 0.25)}, {after});
  ASSERT_EQ(epoch.size(), 1u);
  EXPECT_EQ(epoch[0].name(), "layer1");
  EXPECT_EQ(epoch[0].gradients().raw_bytes(), 500u);
  EXPECT_EQ(epoch[0].gradients().wire_bytes(), 50u);
  EXPECT_EQ(epoch[0].gradients().messages(), 50u);
  EXPECT_EQ(epoch[0].gradients().relative_error(), 4 * 0.5 - 3 * 0.25);
  EXPECT_EQ(epoch[0].gradients().level(), 0.25);
  EXPECT_FALSE(epoch[0].activations().has_level());
}

TEST(EpochBoundariesTest, TheFirstEpochHasAll) {
  EXPECT_EQ(EpochBoundaries({}, {Record(7, 1, 0.5)})[0].gradients().wire_bytes(), 7u);
}

TEST(EpochBoundariesTest, AnEpochWithoutMeasuredMessagesHasNoError) {
  const auto epoch = EpochBoundaries({Record(7, 3, 0.5)}, {Record(9, 3, 0.5)});
  EXPECT_FALSE(epoch[0].gradients().has_relative_error());
}

TEST(BoundaryTotalsTest, WhatWasCountedBeforeIsAddedAndMeansAreWeighted) {
  StageReport report = UpstreamStage();
  report.mutable_boundaries(0)->set_measured_messages(1);
  report.mutable_boundaries(0)->set_coded_messages(1);
  BoundaryTotals first({"layer1"}, {/*stages=*/2});
  first.Update(report);
  BoundaryTotals second({"layer1", "layer2"}, {/*stages=*/2}, first.Records());
  EXPECT_EQ(second.Records()[0].SerializeAsString(), first.Records()[0].SerializeAsString());
  BoundaryReport* sent = report.mutable_boundaries(0);
  sent->set_wire_bytes(150);
  sent->set_relative_error(0.1);
  sent->set_measured_messages(3);
  second.Update(report);
  const DirectionRecord sum = second.Records()[0].activations();
  EXPECT_EQ(sum.wire_bytes(), 200u);
  EXPECT_EQ(sum.wire_bits_per_element(), 8.0);  // of 200 elements
  EXPECT_EQ(sum.encode_seconds(), 2.0);
  EXPECT_EQ(sum.measured_messages(), 4u);
  EXPECT_DOUBLE_EQ(sum.relative_error(), 0.2);
  EXPECT_DOUBLE_EQ(sum.codec_relative_error(), 0.25);
  EXPECT_EQ(second.Records()[1].activations().messages(), 0u);
}

TEST(TakeTrafficTest, StepsOfCutsAndOfWhatReplicasExchangeAreTakenOnce) {
  StageReport report = UpstreamStage();
  report.mutable_boundaries(0)->add_steps()->set_step(7);
  StepTraffic& contributions = *report.mutable_contributions()->add_steps();
  contributions.set_step(8);
  contributions.set_raw_bytes(400);
  contributions.set_wire_bytes(50);
  contributions.set_messages(3);
  contributions.set_relative_error(0.5);
  report.mutable_average()->add_steps()->set_step(8);
  const std::vector<TrafficRecord> traffic = TakeTraffic(&report);
  ASSERT_EQ(traffic.size(), 3u);
  EXPECT_EQ(traffic[0].boundary(), "layer1");
  EXPECT_EQ(traffic[1].boundary(), "replicas");
  EXPECT_EQ(traffic[1].direction(), "contributions");
  EXPECT_EQ(traffic[1].step(), 8u);
  EXPECT_EQ(traffic[1].raw_bytes(), 400u);
  EXPECT_EQ(traffic[1].wire_bytes(), 50u);
  EXPECT_EQ(traffic[1].messages(), 3u);
  EXPECT_EQ(traffic[1].relative_error(), 0.5);
  EXPECT_EQ(traffic[2].direction(), "average");
  EXPECT_TRUE(TakeTraffic(&report).empty());
}

TEST(BoundaryTotalsTest, WhatReplicasExchangedIsSummedOverStages) {
  BoundaryTotals totals({"stem"}, {2});
  EXPECT_FALSE(totals.Replicas({}).has_contributions());
  StageReport report;
  BoundaryReport& contributions = *report.mutable_contributions();
  contributions.set_codec("ecsq(rate=2)");
  contributions.set_raw_bytes(4000);
  contributions.set_wire_bytes(250);
  contributions.set_elements(1000);
  contributions.set_messages(3);
  contributions.set_measured_messages(1);
  contributions.set_relative_error(0.5);
  totals.Update(report);
  report.set_stage(1);
  contributions.set_relative_error(0.1);
  totals.Update(report);
  const ReplicasRecord once = totals.Replicas({});
  EXPECT_EQ(once.contributions().codec(), "ecsq");
  EXPECT_EQ(once.contributions().wire_bytes(), 500u);
  EXPECT_EQ(once.contributions().wire_bits_per_element(), 2);
  EXPECT_DOUBLE_EQ(once.contributions().relative_error(), 0.3);
  EXPECT_FALSE(once.has_average());
  const ReplicasRecord twice = totals.Replicas(once);
  EXPECT_EQ(twice.contributions().messages(), 12u);
  EXPECT_EQ(EpochOfReplicas(once, twice).contributions().wire_bytes(), 500u);
}

TEST(BoundaryTotalsTest, WhatStashesEncodedIsSummedOverStages) {
  BoundaryTotals totals({"stem"}, {2});
  EXPECT_EQ(totals.Stash({}).messages(), 0u);
  StageReport report;
  BoundaryReport& stash = *report.mutable_stash();
  stash.set_codec("uniform(bits=4)");
  stash.set_raw_bytes(4000);
  stash.set_payload_bytes(600);
  stash.set_wire_bytes(600);
  stash.set_elements(1000);
  stash.set_messages(3);
  stash.set_encode_seconds(0.5);
  totals.Update(report);
  report.set_stage(1);
  totals.Update(report);
  const DirectionRecord once = totals.Stash({}), twice = totals.Stash(once);
  EXPECT_EQ(once.codec(), "uniform");
  EXPECT_EQ(once.wire_bytes(), 1200u);
  EXPECT_DOUBLE_EQ(once.wire_bits_per_element(), 4.8);
  EXPECT_EQ(twice.messages(), 12u);
  EXPECT_EQ(twice.encode_seconds(), 2);
}

TEST(BoundaryTotalsTest, WhatWaitedElsewhereIsSummedOverStages) {
  BoundaryTotals totals({"stem"}, {2});
  EXPECT_EQ(totals.Swap({}).bytes_out(), 0u);
  StageReport report;
  report.mutable_swap()->set_bytes_out(600);
  report.mutable_swap()->set_bytes_in(500);
  report.mutable_swap()->set_wait_seconds(0.5);
  report.mutable_swap()->set_most_bytes(300);
  totals.Update(report);
  report.set_stage(1);
  report.mutable_swap()->set_most_bytes(400);
  totals.Update(report);
  const SwapRecord once = totals.Swap({}), twice = totals.Swap(once);
  EXPECT_EQ(once.bytes_out(), 1200u);
  EXPECT_EQ(once.bytes_in(), 1000u);
  EXPECT_EQ(once.most_bytes(), 400u);
  EXPECT_EQ(twice.bytes_out(), 2400u);
  EXPECT_EQ(twice.wait_seconds(), 2);
  EXPECT_EQ(twice.most_bytes(), 400u);
}

}  // namespace
}  // namespace thinwire
