// Tests of both ends of a direction: equal state whatever is sent, exact messages, checkpoints.
#include "compress/feedback/feedback.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compress/feedback/pair_testing.h"

namespace thinwire {
namespace {

// Returns the rows of the messages of 100 steps: batches of four samples, in messages of 3 and 1.
std::vector<Rows> RowsOf(StateKey key) {
  std::vector<Rows> all;
  for (uint64_t step = 0; step < 50; ++step) {
    std::vector<uint64_t> ids(20);  // the samples in this epoch's order
    for (uint64_t i = 0; i < 20; ++i) ids[i] = i;
    const uint64_t epoch = step / 5, batch = step % 5;
    std::sort(ids.begin(), ids.end(), [epoch](uint64_t a, uint64_t b) {
      return RandomKey(epoch, a) < RandomKey(epoch, b);
    });
    for (const auto& [first, count] : {std::pair<uint64_t, uint64_t>{0, 3}, {3, 1}}) {
      Rows rows;
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t slot = first + i;
        rows.push_back(key == StateKey::kStream   ? i
                       : key == StateKey::kSlot   ? slot
                       : key == StateKey::kSample ? 1000000007 * ids[4 * batch + slot]
                                                  : 4 * batch + slot);
      }
      all.push_back(rows);
    }
  }
  return all;
}

void RunAndCompare(const FeedbackSpec& spec, const CodecSpec& codec_spec, DType dtype) {
  SCOPED_TRACE(spec.ToString() + " " + codec_spec.ToString() + " " + Name(dtype));
  FeedbackPair pair(FeedbackOptionsOf(spec, kSampleShape, dtype));
  const auto codec = CodecOf(codec_spec);
  uint64_t step = 0;
  for (const Rows& rows : RowsOf(spec.key)) {
    FeedbackSender::Outgoing outgoing;
    outgoing.compress = step % 10 != 7;
    outgoing.step = step;
    outgoing.want_received = true;
    outgoing.context.random_key = step;
    const auto received =
        pair.Send(*codec, RandomMessage(rows.size(), step, dtype), rows, outgoing);
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_EQ(BytesOf(*received), BytesOf(pair.encoded.received)) << "step " << step;
    ++step;
  }
  if (spec.kind != FeedbackKind::kEf21) return;
  EXPECT_EQ(pair.sender->state()->keys(), pair.receiver->state()->keys());
  EXPECT_EQ(StoredRows(pair.sender->state()), StoredRows(pair.receiver->state()));
}

TEST(BothEndsTest, KeepEqualStateForHundredSteps) {
  for (const StateKey key :
       {StateKey::kStream, StateKey::kSlot, StateKey::kSample, StateKey::kBatch}) {
    for (const StateStorage store :
         {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8, StateStorage::kQ4}) {
      for (const CodecSpec& codec : SomeCodecs()) {
        for (const DType dtype : {DType::kF32, DType::kBF16}) {
          FeedbackSpec spec = SpecOf(FeedbackKind::kEf21);
          spec.key = key;
          spec.store = store;
          spec.digest_every = 1;
          RunAndCompare(spec, codec, dtype);
          spec.init = StateInit::kExact;
          RunAndCompare(spec, codec, dtype);
          spec.kind = FeedbackKind::kEf;
          spec.init = StateInit::kZero;
          RunAndCompare(spec, codec, dtype);
        }
      }
    }
  }
}

TEST(BothEndsTest, FileAndMemoryGiveTheSame) {
  for (const StateStorage store : {StateStorage::kF32, StateStorage::kQ8}) {
    for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
      FeedbackSpec spec = SpecOf(kind);
      spec.key = StateKey::kSample;
      spec.store = store;
      FeedbackPair memory(FeedbackOptionsOf(spec, kSampleShape));
      spec.dir = testing::TempDir();
      FeedbackPair file(FeedbackOptionsOf(spec, kSampleShape));
      const auto codec = CodecOf(TopKOf(0.1));
      uint64_t step = 0;
      for (const Rows& rows : RowsOf(spec.key)) {
        const Tensor x = RandomMessage(rows.size(), step++);
        ASSERT_EQ(FloatsOf(*memory.Send(*codec, x, rows)), FloatsOf(*file.Send(*codec, x, rows)));
      }
      EXPECT_EQ(StoredRows(memory.sender->state()), StoredRows(file.sender->state()));
    }
  }
}

TEST(ExactMessageTest, UnderEfSendsTheErrorAndClearsIt) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), {1, 4}));
    CodecSpec two = TopKOf(0);
    two.k = 2;
    const auto codec = CodecOf(two);
    const Tensor x = TensorOf({1, 4}, {8, 4, 2, 1});
    const std::vector<float> sent = FloatsOf(*pair.Send(*codec, x, {0}));
    FeedbackSender::Outgoing exact;
    exact.compress = false;
    const std::vector<float> second = FloatsOf(*pair.Send(*codec, x, {0}, exact));
    EXPECT_TRUE(pair.encoded.exact);
    EXPECT_EQ(pair.payload.size(), 16u);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(sent[i] + second[i], 2 * FloatsOf(x)[i]);
    EXPECT_EQ(FloatsOf(*pair.Send(*codec, x, {0}, exact)), FloatsOf(x));
  }
}

TEST(ExactMessageTest, UnderEf21SetsBothEndsToX) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21), kSampleShape));
  const auto codec = CodecOf(TopKOf(0.1));
  const Tensor x = RandomMessage(2, 1);
  FeedbackSender::Outgoing exact;
  exact.compress = false;
  ASSERT_EQ(FloatsOf(*pair.Send(*codec, x, {5, 6}, exact)), FloatsOf(x));
  ASSERT_EQ(FloatsOf(*pair.Send(*codec, x, {5, 6})), FloatsOf(x));
  EXPECT_EQ(FloatsOf(pair.encoded.message), std::vector<float>(2 * kSampleElements));
}

TEST(ExactMessageTest, OfBFloatIsBFloat) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape, DType::kBF16));
    FeedbackSender::Outgoing exact;
    exact.compress = false;
    const Tensor x = RandomMessage(2, 1, DType::kBF16);
    EXPECT_EQ(BytesOf(*pair.Send(*CodecOf(TopKOf(0.1)), x, {0, 1}, exact)), BytesOf(x));
    EXPECT_EQ(pair.payload.size(), 2u * 2 * kSampleElements);
  }
}

TEST(ExactMessageTest, CodecNoneIsExact) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape, DType::kBF16));
    const Tensor x = RandomMessage(2, 1, DType::kBF16);
    EXPECT_EQ(BytesOf(*pair.Send(*CodecOf({}), x, {0, 1})), BytesOf(x));
    EXPECT_TRUE(pair.encoded.exact);
  }
}

TEST(CheckpointTest, RestoredEndsGoOnBitByBit) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackSpec spec =
        SpecOf(kind, kind == FeedbackKind::kEf21 ? StateInit::kExact : StateInit::kZero);
    spec.store = StateStorage::kF16;
    FeedbackPair pair(FeedbackOptionsOf(spec, kSampleShape));
    const auto codec = CodecOf(TopKOf(0.1));
    const std::vector<Rows> rows = RowsOf(StateKey::kSample);
    for (int step = 0; step < 40; ++step) {
      ASSERT_TRUE(pair.Send(*codec, RandomMessage(rows[step].size(), step), rows[step]).ok());
    }
    FeedbackPair other(FeedbackOptionsOf(spec, kSampleShape));
    const auto copy = [](StateStore* from, StateStore* to) {
      const auto stored = StoredRows(from);
      for (size_t i = 0; i < stored.size(); ++i) {
        ASSERT_TRUE(to->Restore(from->keys()[i], stored[i]).ok());
      }
    };
    copy(pair.sender->state(), other.sender->state());
    if (kind == FeedbackKind::kEf21) copy(pair.receiver->state(), other.receiver->state());
    for (int step = 40; step < 60; ++step) {
      const Tensor x = RandomMessage(rows[step].size(), step);
      ASSERT_EQ(FloatsOf(*pair.Send(*codec, x, rows[step])),
                FloatsOf(*other.Send(*codec, x, rows[step])));
      ASSERT_EQ(pair.payload, other.payload);
    }
  }
}

TEST(FrozenTest, EvaluationReadsAndWritesNoState) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
    const auto codec = CodecOf(TopKOf(0.1));
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(2, 1), {0, 1}).ok());
    const auto before = StoredRows(pair.sender->state());
    FeedbackSender::Outgoing outgoing;
    outgoing.frozen = true;
    const Tensor x = RandomMessage(3, 2);
    EXPECT_EQ(FloatsOf(*pair.Send(*codec, x, {0, 1, 2}, outgoing)), *RoundTrip(TopKOf(0.1), x));
    outgoing.compress = false;
    EXPECT_EQ(FloatsOf(*pair.Send(*codec, x, {0, 1, 2}, outgoing)), FloatsOf(x));
    EXPECT_EQ(StoredRows(pair.sender->state()), before);
  }
}

TEST(WarmStartTest, IsKeptFromTrainingMessagesOnly) {
  CodecSpec low_rank;
  low_rank.kind = CodecKind::kLowRank;
  low_rank.rank = 2;
  const auto codec = CodecOf(low_rank);
  for (const FeedbackKind kind : {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
    const Tensor x = RandomMessage(4, 1);
    ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2, 3}).ok());
    const std::vector<uint8_t> cold = pair.payload;
    const std::shared_ptr<const Carry> factor = pair.sender->carry();
    ASSERT_NE(factor, nullptr);
    FeedbackSender::Outgoing outgoing;
    outgoing.frozen = true;
    ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2, 3}, outgoing).ok());
    EXPECT_EQ(pair.sender->carry(), factor);
    EXPECT_NE(pair.payload, cold);  // started from it all the same
    EXPECT_EQ(pair.receiver->carry(), nullptr);
    outgoing = {};
    outgoing.compress = false;
    ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2, 3}, outgoing).ok());
    EXPECT_EQ(pair.sender->carry(), factor);
    FeedbackPair other(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
    other.sender->set_carry(factor);
    ASSERT_TRUE(other.Send(*codec, x, {0, 1, 2, 3}).ok());
    EXPECT_NE(other.payload, cold);
  }
}

TEST(WarmStartTest, ASmallerMessageForgetsNoSample) {
  CodecSpec low_rank;
  low_rank.kind = CodecKind::kLowRank;
  low_rank.rank = 2;
  low_rank.per_sample = true;
  const auto codec = CodecOf(low_rank);
  const Tensor four = RandomMessage(4, 1), three = RandomMessage(3, 1);
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kNone), kSampleShape));
  ASSERT_TRUE(pair.Send(*codec, four, {0, 1, 2, 3}).ok());
  const std::vector<uint8_t> cold = pair.payload;
  const std::string of_four = DataOfPart(pair.sender->carry(), "warm_start");
  ASSERT_TRUE(pair.Send(*codec, three, {0, 1, 2}).ok());
  const std::string kept = DataOfPart(pair.sender->carry(), "warm_start");
  ASSERT_EQ(kept.size(), of_four.size());
  EXPECT_EQ(kept.substr(3 * kept.size() / 4), of_four.substr(3 * kept.size() / 4));
  EXPECT_NE(kept, of_four);
  ASSERT_TRUE(pair.Send(*codec, four, {0, 1, 2, 3}).ok());
  // A pair of ends that never saw a smaller message.
  FeedbackPair always(FeedbackOptionsOf(SpecOf(FeedbackKind::kNone), kSampleShape));
  ASSERT_TRUE(always.Send(*codec, four, {0, 1, 2, 3}).ok());
  ASSERT_TRUE(always.Send(*codec, four, {0, 1, 2, 3}).ok());
  const size_t bytes = cold.size() / 4;
  const auto sample = [&](const std::vector<uint8_t>& payload, size_t i) {
    const auto at = payload.begin() + static_cast<std::ptrdiff_t>(i * bytes);
    return std::vector<uint8_t>(at, at + static_cast<std::ptrdiff_t>(bytes));
  };
  EXPECT_EQ(sample(pair.payload, 3), sample(always.payload, 3));
  for (size_t i = 0; i < 4; ++i) EXPECT_NE(sample(pair.payload, i), sample(cold, i)) << i;
}

TEST(FeedbackTest, EmptyMessagesTravel) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
    EXPECT_TRUE(pair.Send(*CodecOf(TopKOf(0.1)), RandomMessage(0, 1), {}).ok());
  }
}

TEST(FeedbackTest, MemoryIsTakenByTheLargestMessageOnly) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
    const auto codec = CodecOf(TopKOf(0.1));
    const Tensor x = RandomMessage(4, 1), part = RandomMessage(2, 1);
    const auto send = [&] {
      ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2, 3}).ok());
      ASSERT_TRUE(pair.Send(*codec, part, {3, 1}).ok());
    };
    send();
    pair.encoded = {};
    const size_t before = CpuDevice()->bytes_in_use();
    for (int i = 0; i < 5; ++i) send();
    pair.encoded = {};
    EXPECT_EQ(CpuDevice()->bytes_in_use(), before);
  }
}

// Tests the parts of a message whose codec somebody else calls.
TEST(SenderTest, AMessageInPartsLeavesTheStateOfAWholeOne) {
  for (const FeedbackKind kind : {FeedbackKind::kNone, FeedbackKind::kEf}) {
    FeedbackSpec spec = SpecOf(kind);
    spec.decay = 0.5;
    FeedbackPair whole(FeedbackOptionsOf(spec, kSampleShape, DType::kF32));
    FeedbackPair parts(FeedbackOptionsOf(spec, kSampleShape, DType::kF32));
    const auto codec = CodecOf(SomeCodecs()[0]);
    for (uint64_t step = 0; step < 5; ++step) {
      const Tensor x = RandomMessage(3, step);
      const Rows rows = {1, 2, 3 + step / 2};
      FeedbackSender::Outgoing outgoing;
      outgoing.want_received = true;
      ASSERT_TRUE(whole.Send(*codec, x, rows, outgoing).ok());
      const Tensor message = *parts.sender->Compensate(x, Rows(rows));  // they need not stay
      ASSERT_NE(message.data(), x.data());
      ASSERT_EQ(BytesOf(message), BytesOf(whole.encoded.message)) << "step " << step;
      ASSERT_TRUE(parts.sender->KeepErrors(message, whole.encoded.decoded).ok());
      EXPECT_EQ(*parts.sender->RelativeResidual(x), *whole.sender->RelativeResidual(x));
    }
    if (kind == FeedbackKind::kNone) continue;
    EXPECT_EQ(StoredRows(parts.sender->state()), StoredRows(whole.sender->state()));
  }
}

}  // namespace
}  // namespace thinwire
