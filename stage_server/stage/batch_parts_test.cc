#include "stage_server/stage/batch_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Three replicas of two microbatches each.
StageSpec Replicas(int carrier, int carriers) {
  StageSpec spec;
  spec.microbatches = 2;
  spec.replicas.count = 3;
  spec.carrier = carrier;
  spec.grid.replicas = carriers;
  return spec;
}

TEST(BatchPartsTest, ALastBatchMayBeSmaller) {
  EXPECT_THAT(BatchesOf({10, 25}, 6),
              ElementsAre(SampleRange{10, 16}, SampleRange{16, 22}, SampleRange{22, 25}));
}

TEST(BatchPartsTest, ReplicasHaveTheirMicrobatchesInOrder) {
  const StageSpec spec = Replicas(/*carrier=*/0, /*carriers=*/1);
  EXPECT_THAT(PartsOf(spec, {20, 28}),
              ElementsAre(ElementsAre(SampleRange{20, 22}, SampleRange{22, 24}),
                          ElementsAre(SampleRange{24, 25}, SampleRange{25, 26}),
                          ElementsAre(SampleRange{26, 27}, SampleRange{27, 28})));
  EXPECT_EQ(SamplesOf(spec, 8, 0), 4);
  EXPECT_EQ(SamplesOf(spec, 8, 2), 2);
}

TEST(BatchPartsTest, OfASmallBatchTheLastReplicasHaveLessOrNothing) {
  const StageSpec spec = Replicas(/*carrier=*/0, /*carriers=*/1);
  EXPECT_EQ(MicrobatchesOf(spec, 3), 3);
  EXPECT_EQ(ReplicasWithSamples(spec, 3), 2);
  EXPECT_EQ(SamplesOf(spec, 3, 1), 1);
  EXPECT_EQ(SamplesOf(spec, 3, 2), 0);
  EXPECT_THAT(PartsOf(spec, {0, 3}), ElementsAre(ElementsAre(SampleRange{0, 1}, SampleRange{1, 2}),
                                                 ElementsAre(SampleRange{2, 3}), IsEmpty()));
}

TEST(BatchPartsTest, ACarrierHasTheMicrobatchesOfItsReplicas) {
  EXPECT_THAT(PartsOf(Replicas(/*carrier=*/0, /*carriers=*/2), {0, 6}),
              ElementsAre(ElementsAre(SampleRange{0, 1}, SampleRange{1, 2})));
  EXPECT_THAT(PartsOf(Replicas(/*carrier=*/1, /*carriers=*/2), {0, 6}),
              ElementsAre(ElementsAre(SampleRange{2, 3}, SampleRange{3, 4}),
                          ElementsAre(SampleRange{4, 5}, SampleRange{5, 6})));
}

}  // namespace
}  // namespace thinwire
