// Tests of which positions of a message go as they are, with a codec that sends first ones so.
#include "stage_server/boundary/sequence_starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "stage_server/boundary/boundary_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

class FirstPositionsTest : public BoundaryTest {
 protected:
  void SetUp() override {
    BoundaryTest::SetUp();
    spec_.sample = {1, 4, 3};
    spec_.codec = DefaultSpec(CodecKind::kUniform);
    spec_.codec.bits = 1;
    spec_.codec.scope = Scope::kToken;
    spec_.codec.first_position = FirstPosition::kExact;
  }

  // Returns, of each position of a message of one sample, whether it arrives as it was.
  std::vector<bool> AreExact(const MessageKey& key, int64_t positions, SequenceStarts starts = {}) {
    Make(GetParam());
    const Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, {1, positions, 3});
    for (int64_t i = 0; i < x.elements(); ++i) x.floats()[i] = i % 3 == 1 ? 0.3f : i % 3;
    EXPECT_TRUE(sender_->Send(key, 5, /*compress=*/true, x, std::move(starts)).ok());
    BoundaryReceiver::Expected expected = Expect(1);
    expected.key = key;
    const auto received = receiver_->Receive(expected, Soon());
    EXPECT_TRUE(received.ok()) << received.status();
    std::vector<bool> exact;
    for (int64_t i = 0; received.ok() && i < positions; ++i) {
      exact.push_back(received->tensor.floats()[3 * i + 1] == 0.3f);
    }
    return exact;
  }
};

TEST_P(FirstPositionsTest, OnlyPositionZeroOfASequenceIsSentAsItIs) {
  MessageKey text = Key(1);
  text.phase = PHASE_GENERATE;
  EXPECT_THAT(AreExact(Key(1), 4), ElementsAre(true, false, false, false));
  EXPECT_THAT(AreExact(text, 1), ElementsAre(true));
  EXPECT_THAT(AreExact(text, 2), ElementsAre(true, false));
  text.step = 2;
  EXPECT_THAT(AreExact(text, 3), ElementsAre(true, false, false)) << "the window has moved";
  SequenceStarts later;
  later.first_position = 2;
  EXPECT_THAT(AreExact(text, 1, later), ElementsAre(false));
  EXPECT_THAT(AreExact(text, 2, later), ElementsAre(false, false)) << "a chat's next question";
  spec_.slice_positions = {3, 1};
  MessageKey slice = Key(1);
  EXPECT_THAT(AreExact(slice, 3), ElementsAre(true, false, false));
  slice.microbatch = 1;
  EXPECT_THAT(AreExact(slice, 1), ElementsAre(false));
}

TEST_P(FirstPositionsTest, TheFirstPositionOfEachDocumentIsSentAsItIs) {
  spec_.packs_documents = true;
  EXPECT_THAT(AreExact(Key(1), 4, {{2}}), ElementsAre(true, false, true, false));
  EXPECT_THAT(AreExact(Key(1), 4, {{1, 2, 3}}), ElementsAre(true, true, true, true));
  spec_.direction = DIRECTION_GRADIENT;
  EXPECT_THAT(AreExact(Key(1), 4, {{3}}), ElementsAre(true, false, false, true));
  spec_.slice_positions = {2, 2};
  MessageKey slice = Key(1);
  EXPECT_THAT(AreExact(slice, 2, {{2, 3}}), ElementsAre(true, false));
  slice.microbatch = 1;
  EXPECT_THAT(AreExact(slice, 2, {{3}}), ElementsAre(false, true));
  EXPECT_THAT(AreExact(slice, 2, {{1}}), ElementsAre(false, false));
}

INSTANTIATE_TEST_SUITE_P(Workers, FirstPositionsTest,
                         ::testing::Values(Worker::kInline, Worker::kOwnThread));

}  // namespace
}  // namespace thinwire
