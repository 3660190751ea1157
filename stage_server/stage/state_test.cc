// The state of both ends of a cut must be equal after many steps, and any difference must be found
// and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/feedback/feedback.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr char kExperiment[] = R"(
name: state
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 10, limit: 100, test_limit: 10}
pipeline: {cuts: [stem, layer2], microbatches: 2, threads: 1}
compression:
  activations: {codec: topk, ratio: 0.1, feedback: {kind: ef21, digest_every: 3}}
  gradients: {codec: uniform, bits: 4, feedback: {kind: aq_sgd, digest_every: 1}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 12
)";

std::vector<uint64_t> RowDigests(StateStore* store) {
  std::vector<uint64_t> digests;
  for (size_t row = 0; row < store->keys().size(); ++row) {
    digests.push_back(store->keys()[row]);
    digests.push_back(*store->RowDigest(row));
  }
  return digests;
}

TEST(StateTest, BothEndsAreEqualAfterAHundredSteps) {
  Stages stages(kExperiment, {});
  for (uint32_t epoch = 1; epoch <= 10; ++epoch) stages.Train(epoch);
  ASSERT_EQ(stages.executor(0).last_step(), 100u);
  for (const char* cut : {"stem", "layer2"}) {
    for (Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      StateStore* sent = stages.sender(cut, direction).feedback().state();
      StateStore* received = stages.receiver(cut, direction).feedback().state();
      EXPECT_EQ(sent->keys().size(), direction == DIRECTION_ACTIVATION ? 10u : 100u);
      EXPECT_THAT(RowDigests(received), ElementsAreArray(RowDigests(sent))) << cut;
    }
  }
}

// Flips one bit of one row at one end, through the interface that checkpoints use.
void FlipABit(StateStore* store, size_t row) {
  std::vector<uint8_t> bytes(store->row_bytes());
  ASSERT_TRUE(store->ReadStored(row, absl::MakeSpan(bytes)).ok());
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(store->Restore(store->keys()[row], bytes).ok());
}

std::string FirstError(const std::vector<absl::Status>& statuses, const std::string& with) {
  for (const absl::Status& status : statuses) {
    if (std::string(status.message()).find(with) != std::string::npos) {
      return std::string(status.message());
    }
  }
  ADD_FAILURE() << "nobody says: " << with;
  return "";
}

TEST(StateTest, OneFlippedBitAtTheReceiverIsFoundAndNamed) {
  Stages stages(kExperiment, {});
  stages.Train(1);
  FlipABit(stages.receiver("layer2", DIRECTION_ACTIVATION).feedback().state(), 7);
  const std::string error = FirstError(stages.TryTrain(2), "state differs");
  // Slot 7 is in the second microbatch. Step 12 is the first multiple of 3 from step 11 on.
  EXPECT_THAT(error, AllOf(HasSubstr("layer2"), HasSubstr("activation"), HasSubstr("step 12"),
                           HasSubstr("microbatch 1")));
}

TEST(StateTest, OneFlippedBitAtTheSenderIsFoundAndNamed) {
  Stages stages(kExperiment, {"pipeline.stages=1"});
  stages.Train(1);
  FlipABit(stages.sender("stem", DIRECTION_GRADIENT).feedback().state(), 5);
  const std::string error = FirstError(stages.TryTrain(2), "state differs");
  EXPECT_THAT(error, AllOf(HasSubstr("stem"), HasSubstr("gradient"), HasSubstr("step ")));
}

TEST(StateTest, ARowThatOneEndHasLostIsADesync) {
  Stages stages(kExperiment, {});
  stages.Train(1);
  ASSERT_TRUE(stages.receiver("stem", DIRECTION_GRADIENT).feedback().state()->Clear().ok());
  const std::string error = FirstError(stages.TryTrain(2), "DESYNC");
  EXPECT_THAT(error, AllOf(HasSubstr("stem"), HasSubstr("gradient"), HasSubstr("step 11")));
}

TEST(StateTest, AFullStateSaysSo) {
  Stages stages(
      kExperiment,
      {"compression.gradients={codec: uniform, bits: 4, feedback: {kind: ef, key: sample, "
       "limit_bytes: 100000}}"});
  const auto statuses = stages.TryTrain(1);
  const std::string error = FirstError(statuses, "100000");
  EXPECT_THAT(error, AllOf(HasSubstr("gradient"), HasSubstr("step ")));
}

}  // namespace
}  // namespace thinwire
