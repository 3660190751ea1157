#include "stage_server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prometheus/text_serializer.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Page(const std::optional<StageSnapshot>& snapshot, bool busy) {
  const StageMetrics metrics([&] { return snapshot; }, [&] { return busy; }, CpuDevice());
  return prometheus::TextSerializer().Serialize(metrics.Collect());
}

StageSnapshot Snapshot() {
  StageSnapshot snapshot;
  snapshot.run = "digits-1a2b";
  snapshot.stage = 1;
  snapshot.device = CpuDevice();
  StageSnapshot::End end = {"layer1", "gradient", "topk", "ef", /*sender=*/true, {}};
  end.statistics.encode.Observe(0.0013);
  snapshot.ends.push_back(end);
  snapshot.activity.waits[0].receive = 2;
  snapshot.activity.waits[1].receive = 0.5;
  snapshot.waits = {{"layer1", "activation", "receive", 2}, {"layer2", "gradient", "receive", 0.5}};
  return snapshot;
}

TEST(StageMetricsTest, SeriesCarryTheRunAndTheStageWhileOneIsConfigured) {
  EXPECT_THAT(Page(Snapshot(), /*busy=*/true),
              AllOf(HasSubstr("thinwire_stage_up{run=\"digits-1a2b\",stage=\"1\"} 1\n"),
                    HasSubstr("thinwire_stage_busy{run=\"digits-1a2b\",stage=\"1\"} 1\n"),
                    HasSubstr("thinwire_boundary_messages_total{run=\"digits-1a2b\",stage=\"1\","
                              "boundary=\"layer1\",direction=\"gradient\",phase=\"train\"} 0\n")));
  EXPECT_THAT(Page(std::nullopt, /*busy=*/false),
              AllOf(HasSubstr("thinwire_stage_up 1\n"), HasSubstr("thinwire_stage_busy 0\n"),
                    Not(HasSubstr("run="))));
}

TEST(StageMetricsTest, WaitsNameTheirBoundaryAndSumUpToTheActivity) {
  EXPECT_THAT(
      Page(Snapshot(), /*busy=*/true),
      AllOf(HasSubstr("activity=\"receive_wait\"} 2.5\n"),
            HasSubstr("thinwire_boundary_wait_seconds_total{run=\"digits-1a2b\",stage=\"1\""
                      ",boundary=\"layer1\",direction=\"activation\",end=\"receive\"} 2\n"),
            HasSubstr("boundary=\"layer2\",direction=\"gradient\",end=\"receive\"} 0.5\n")));
}

TEST(StageMetricsTest, WaitsForPartsAreThereWithPartsOnly) {
  EXPECT_THAT(Page(Snapshot(), /*busy=*/true), Not(HasSubstr("thinwire_part_wait_seconds_total{")));
  StageSnapshot divided = Snapshot();
  divided.part_wait_seconds = 1.5;
  EXPECT_THAT(Page(divided, /*busy=*/true),
              HasSubstr("thinwire_part_wait_seconds_total{run=\"digits-1a2b\",stage=\"1\"} 1.5\n"));
}

TEST(StageMetricsTest, TheStashIsThereWithOneOnly) {
  EXPECT_THAT(Page(Snapshot(), /*busy=*/true), Not(HasSubstr("stash")));
  StageSnapshot stashing = Snapshot();
  stashing.stash.emplace();
  stashing.stash->train.raw_bytes = 6400;
  stashing.stash->train.payload_bytes = 1000;
  stashing.stash->encode.Observe(0.5);
  EXPECT_THAT(
      Page(stashing, /*busy=*/true),
      AllOf(HasSubstr("thinwire_stash_raw_bytes_total{run=\"digits-1a2b\",stage=\"1\"} 6400\n"),
            HasSubstr("thinwire_stash_bytes_total{run=\"digits-1a2b\",stage=\"1\"} 1000\n"),
            HasSubstr("activity=\"stash\"} 0.5\n"),
            Not(HasSubstr("thinwire_stash_relative_error{"))));
}

TEST(StageMetricsTest, TheSwapIsThereWithOneOnly) {
  EXPECT_THAT(Page(Snapshot(), /*busy=*/true), Not(HasSubstr("swap")));
  StageSnapshot swapping = Snapshot();
  swapping.swap = SwapCounts{6400, 6000, 1000, 0.5};
  EXPECT_THAT(
      Page(swapping, /*busy=*/true),
      AllOf(
          HasSubstr(
              "thinwire_swap_bytes_total{run=\"digits-1a2b\",stage=\"1\",way=\"out\"} 6400\n"),
          HasSubstr("thinwire_swap_bytes_total{run=\"digits-1a2b\",stage=\"1\",way=\"in\"} 6000\n"),
          HasSubstr("thinwire_swap_most_bytes{run=\"digits-1a2b\",stage=\"1\"} 1000\n"),
          HasSubstr("activity=\"swap\"} 0.5\n")));
}

TEST(StageMetricsTest, BucketsAreDecimalsTwelvePerDecade) {
  EXPECT_THAT(Page(Snapshot(), /*busy=*/true),
              AllOf(HasSubstr("direction=\"gradient\",le=\"0.0012\"} 0\n"),
                    HasSubstr("direction=\"gradient\",le=\"0.0015\"} 1\n"),
                    HasSubstr("direction=\"gradient\",le=\"8.25\"} 1\n")));
}

}  // namespace
}  // namespace thinwire
