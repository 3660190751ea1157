#include "config/stage_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"
#include "config/kept.h"
#include "config/specs.h"

namespace thinwire {
namespace {

constexpr char kExperiment[] = R"(
model: {name: gpt2, layers: 3, heads: 2, width: 16, dropout: 0, tied: false}
data: {name: shakespeare, context: 8, batch_size: 8}
pipeline: {cuts: [h.0, h.1], microbatches: 4, schedule: gpipe}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)";

// Memory of the stages of an experiment, of which four microbatches have two samples each.
class Stages {
 public:
  explicit Stages(const std::vector<std::string>& overrides)
      : experiment_(*ParseExperiment(kExperiment, "test", overrides)),
        partition_(*PartitionFrom(experiment_)),
        keeping_(*KeepingsFrom(experiment_, partition_.model)),
        costs_(SegmentCosts(partition_.model, partition_.cuts, keeping_)),
        bits_(*KeptBitsOf(experiment_, partition_)),
        optimizer_(*OptimizerFrom(experiment_)) {}

  double MiddleBytes(bool on_gpu, bool records) const {
    StageMemory memory = {partition_, costs_, keeping_, bits_, optimizer_};
    memory.schedule = *ScheduleFrom(experiment_);
    memory.microbatches = 4;
    memory.microbatch_samples = 2;
    memory.on_gpu = on_gpu;
    memory.records = records;
    memory.replica_samples = 8;
    return memory.FullestBytes(1);
  }
  const SegmentCost& middle() const { return costs_[1]; }

 private:
  const Experiment experiment_;
  const Partition partition_;
  const std::vector<BlockKeeping> keeping_;
  const std::vector<SegmentCost> costs_;
  const KeptBits bits_;
  const OptimizerSpec optimizer_;
};

TEST(StageMemoryTest, ARecordingKeepsForEachMicrobatchAllThatItsPassesNeed) {
  const Stages stages({});
  const SegmentCost& cost = stages.middle();
  EXPECT_TRUE(cost.can_be_recorded);
  const int64_t of_sample = cost.work_elements + 2 * cost.boundary_elements;
  EXPECT_EQ(stages.MiddleBytes(true, true) - stages.MiddleBytes(true, false),
            4 * (2 * 4 * of_sample + kRecordingSlackBytes));
}

TEST(StageMemoryTest, UnderOtherSchedulesOneMoreIsThereThanIsInFlight) {
  // In the middle one of three stages two are in flight, and the gradient of another one leaves.
  const Stages plain({"pipeline.schedule=1f1b"});
  const SegmentCost& cost = plain.middle();
  const int64_t kept = cost.kept_elements;
  const int64_t of_sample = kept + cost.work_elements + 2 * cost.boundary_elements;
  EXPECT_EQ(plain.MiddleBytes(true, true) - plain.MiddleBytes(true, false),
            3 * (2 * 4 * of_sample + kRecordingSlackBytes) - 2 * 2 * 4 * kept);
  // With split backward passes three are in flight or wait, with their output gradients. The one
  // whose gradient leaves is among them.
  const Stages split({"pipeline.schedule=zero_bubble"});
  EXPECT_EQ(split.MiddleBytes(true, true) - plain.MiddleBytes(true, true),
            3 * 2 * 4 * cost.deferred_elements);
  EXPECT_GT(cost.deferred_elements, 0);
  EXPECT_LT(cost.deferred_elements, cost.waiting_elements);
}

TEST(StageMemoryTest, ABlockThatRunsAgainDoesSoInItsRecording) {
  const Stages stages({"pipeline.recompute=blocks"});
  const SegmentCost& cost = stages.middle();
  EXPECT_GT(cost.recomputed_elements, 0);
  const int64_t again = 2 * 4 * cost.recomputed_elements;  // at once, if nothing is recorded
  const int64_t of_sample =
      cost.work_elements + 2 * cost.boundary_elements + cost.recomputed_elements;
  EXPECT_EQ(stages.MiddleBytes(true, true) - stages.MiddleBytes(true, false),
            4 * (2 * 4 * of_sample + kRecordingSlackBytes) - again);
}

TEST(StageMemoryTest, BlocksThatDrawNumbersOrPutAwayAreNotRecorded) {
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {"model.dropout=0.1"}, {"pipeline.stash={lossless: entropy}"}}) {
    const Stages stages(overrides);
    EXPECT_FALSE(stages.middle().can_be_recorded);
    EXPECT_EQ(stages.MiddleBytes(true, true), stages.MiddleBytes(true, false));
  }
}

TEST(StageMemoryTest, AGpuReceivesInSlotsAndAProgramIsTheHosts) {
  const Stages stages({});
  // Four messages of a batch, in either direction: from both neighbours.
  const double batch = 8 * 8 * 16 * 4, messages_at_cut = 2 * 8 * 16 * 4 * kMessagesAtCut;
  EXPECT_EQ(stages.MiddleBytes(false, false) - stages.MiddleBytes(true, false),
            kProgramBytes + 2 * messages_at_cut - 2 * 4 * batch);
}

}  // namespace
}  // namespace thinwire
