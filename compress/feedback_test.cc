// Both ends of a direction: equal state whatever is sent, exact messages, rows that find no room,
// damage, checkpoints.
#include "compress/feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "compress/feedback_pair.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

constexpr int kElements = 96;
const Shape kSample = {1, 6, 16};

Tensor MessageOf(int batch, uint64_t seed, DType dtype = DType::kF32) {
  std::vector<float> values = RandomValues(batch * kElements, seed);
  const Shape shape = kSample.WithBatch(batch);
  if (dtype == DType::kF32) return TensorOf(shape, values);
  return BFloatTensorOf(shape, values);  // cut to bf16
}

// Rows of the messages of 100 steps: batches of four samples, two messages of 3 and 1 each.
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

std::vector<CodecSpec> Codecs() {
  CodecSpec fp16;
  fp16.kind = CodecKind::kFp16;
  return {UniformOf(4), UniformOf(4, Rounding::kStochastic), TopKOf(0.1), fp16};
}

void RunAndCompare(const FeedbackSpec& spec, const CodecSpec& codec_spec, DType dtype) {
  SCOPED_TRACE(spec.ToString() + " " + codec_spec.ToString() + " " + Name(dtype));
  FeedbackPair pair(FeedbackOptionsOf(spec, kSample, dtype));
  const auto codec = CodecOf(codec_spec);
  uint64_t step = 0;
  for (const Rows& rows : RowsOf(spec.key)) {
    FeedbackSender::Outgoing outgoing;
    outgoing.compress = step % 10 != 7;
    outgoing.step = step;
    outgoing.want_received = true;
    outgoing.context.random_key = step;
    const auto received = pair.Send(*codec, MessageOf(rows.size(), step, dtype), rows, outgoing);
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
      for (const CodecSpec& codec : Codecs()) {
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
      FeedbackPair memory(FeedbackOptionsOf(spec, kSample));
      spec.dir = testing::TempDir();
      FeedbackPair file(FeedbackOptionsOf(spec, kSample));
      const auto codec = CodecOf(TopKOf(0.1));
      uint64_t step = 0;
      for (const Rows& rows : RowsOf(spec.key)) {
        const Tensor x = MessageOf(rows.size(), step++);
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
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21), kSample));
  const auto codec = CodecOf(TopKOf(0.1));
  const Tensor x = MessageOf(2, 1);
  FeedbackSender::Outgoing exact;
  exact.compress = false;
  ASSERT_EQ(FloatsOf(*pair.Send(*codec, x, {5, 6}, exact)), FloatsOf(x));
  ASSERT_EQ(FloatsOf(*pair.Send(*codec, x, {5, 6})), FloatsOf(x));
  EXPECT_EQ(FloatsOf(pair.encoded.message), std::vector<float>(2 * kElements));
}

TEST(ExactMessageTest, OfBFloatIsBFloat) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample, DType::kBF16));
    FeedbackSender::Outgoing exact;
    exact.compress = false;
    const Tensor x = MessageOf(2, 1, DType::kBF16);
    EXPECT_EQ(BytesOf(*pair.Send(*CodecOf(TopKOf(0.1)), x, {0, 1}, exact)), BytesOf(x));
    EXPECT_EQ(pair.payload.size(), 2u * 2 * kElements);
  }
}

TEST(ExactMessageTest, CodecNoneIsExact) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample, DType::kBF16));
    const Tensor x = MessageOf(2, 1, DType::kBF16);
    EXPECT_EQ(BytesOf(*pair.Send(*CodecOf({}), x, {0, 1})), BytesOf(x));
    EXPECT_TRUE(pair.encoded.exact);
  }
}

TEST(FirstVisitTest, GoesExactOncePerRow) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21, StateInit::kExact), kSample));
  const auto codec = CodecOf(TopKOf(0.1));
  const auto first_visit = [&](const Rows& rows) {
    const auto received = pair.Send(*codec, MessageOf(rows.size(), rows[0]), rows);
    EXPECT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(pair.encoded.exact, pair.encoded.first_visit);
    return pair.encoded.first_visit;
  };
  EXPECT_TRUE(first_visit({1, 2}));
  EXPECT_FALSE(first_visit({2, 1}));
  EXPECT_TRUE(first_visit({1, 3}));  // one new row is enough
  EXPECT_FALSE(first_visit({3}));
}

TEST(FirstVisitTest, AnEndThatKnowsOtherRowsIsDesynchronised) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21, StateInit::kExact), kSample));
  const auto codec = CodecOf(TopKOf(0.1));
  ASSERT_TRUE(pair.Send(*codec, MessageOf(2, 1), {41, 42}).ok());
  ASSERT_TRUE(pair.receiver->state()->Clear().ok());
  FeedbackSender::Outgoing outgoing;
  outgoing.step = 17;
  const absl::Status forgot = pair.Send(*codec, MessageOf(2, 1), {41, 42}, outgoing).status();
  EXPECT_EQ(forgot.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(forgot.message()), HasSubstr("DESYNC"));
  EXPECT_THAT(std::string(forgot.message()), HasSubstr("step 17"));
  EXPECT_THAT(std::string(forgot.message()), HasSubstr("41, 42"));
  ASSERT_TRUE(pair.sender->state()->Clear().ok());
  ASSERT_TRUE(pair.Send(*codec, MessageOf(2, 1), {41, 42}).ok());
  ASSERT_TRUE(pair.sender->state()->Clear().ok());
  EXPECT_EQ(pair.Send(*codec, MessageOf(2, 1), {41, 42}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

FeedbackSpec LimitedSpec(FeedbackKind kind, OnFull on_full, StateInit init = StateInit::kZero) {
  FeedbackSpec spec = SpecOf(kind, init);
  spec.limit_bytes = 3 * 4 * kElements;
  spec.on_full = on_full;
  spec.digest_every = kind == FeedbackKind::kEf21 ? 1 : 0;
  return spec;
}

TEST(OnFullTest, ErrorNamesLimitBytesAndRows) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair pair(FeedbackOptionsOf(LimitedSpec(kind, OnFull::kError), kSample));
    const auto codec = CodecOf(TopKOf(0.1));
    ASSERT_TRUE(pair.Send(*codec, MessageOf(2, 1), {1, 2}).ok());
    const absl::Status status = pair.Send(*codec, MessageOf(3, 2), {2, 33, 34}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    for (const char* part : {"1152", "1536", "33, 34"}) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    }
    FeedbackSender::Outgoing exact;
    exact.compress = false;
    EXPECT_EQ(pair.Send(*codec, MessageOf(3, 2), {2, 33, 34}, exact).status(), status);
    EXPECT_TRUE(pair.Send(*codec, MessageOf(2, 3), {2, 3}).ok());  // state was as before
  }
}

TEST(OnFullTest, PlainRowsTravelAsIfTheirStateWereZero) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair limited(FeedbackOptionsOf(LimitedSpec(kind, OnFull::kPlain), kSample));
    FeedbackPair unlimited(FeedbackOptionsOf(SpecOf(kind), kSample));
    CodecSpec by_sample = TopKOf(0.1);
    by_sample.scope = Scope::kSample;
    const auto codec = CodecOf(by_sample);
    for (uint64_t step = 0; step < 5; ++step) {
      const Tensor x = MessageOf(4, step);
      FeedbackSender::Outgoing outgoing;
      outgoing.want_received = true;
      outgoing.step = step;
      const Tensor received = *limited.Send(*codec, x, {10, 11, 12, 13}, outgoing);
      EXPECT_EQ(FloatsOf(received), FloatsOf(limited.encoded.received));
      // Row 13 found no room; the others are as without a limit.
      std::vector<float> want = FloatsOf(*unlimited.Send(*codec, x, {10, 11, 12, 13}));
      const std::vector<float> plain = *RoundTrip(by_sample, x);
      std::copy(plain.end() - kElements, plain.end(), want.end() - kElements);
      EXPECT_EQ(FloatsOf(received), want) << "step " << step;
    }
    EXPECT_EQ(limited.sender->state()->keys(), Rows({10, 11, 12}));
  }
}

TEST(OnFullTest, RowsWithoutRoomAreNoFirstVisits) {
  FeedbackPair pair(FeedbackOptionsOf(
      LimitedSpec(FeedbackKind::kEf21, OnFull::kPlain, StateInit::kExact), kSample));
  const auto codec = CodecOf(TopKOf(0.1));
  const auto first_visit = [&](const Rows& rows) {
    const auto received = pair.Send(*codec, MessageOf(rows.size(), rows[0]), rows);
    EXPECT_TRUE(received.ok()) << received.status();
    return pair.encoded.first_visit;
  };
  EXPECT_TRUE(first_visit({1, 2}));
  EXPECT_TRUE(first_visit({3, 4}));  // 3 finds room
  EXPECT_FALSE(first_visit({4, 5}));
  EXPECT_FALSE(first_visit({3, 4}));
}

TEST(DigestTest, AFlippedBitIsCaughtAndNamedAtTheNextDigestOfItsRow) {
  for (const StateStorage storage : {StateStorage::kF32, StateStorage::kQ4}) {
    for (const bool at_sender : {true, false}) {
      FeedbackSpec spec = SpecOf(FeedbackKind::kEf21);
      spec.digest_every = 4;
      spec.store = storage;
      FeedbackPair pair(FeedbackOptionsOf(spec, kSample));
      CodecSpec by_sample = TopKOf(0.1);
      by_sample.scope = Scope::kSample;
      const auto codec = CodecOf(by_sample);
      FeedbackSender::Outgoing outgoing;
      const auto send = [&](uint64_t step, const Rows& rows) {
        outgoing.step = step;
        return pair.Send(*codec, MessageOf(rows.size(), 7), rows, outgoing).status();
      };
      ASSERT_TRUE(send(0, {70, 71, 72, 73}).ok());
      StateStore* store = at_sender ? pair.sender->state() : pair.receiver->state();
      std::vector<uint8_t> row = StoredRows(store)[2];
      row[row.size() - 5] ^= 1;
      ASSERT_TRUE(store->Restore(72, row).ok());
      EXPECT_TRUE(send(4, {70, 71, 73}).ok());
      EXPECT_TRUE(send(7, {70, 71, 72, 73}).ok());
      const absl::Status status = send(8, {70, 71, 72, 73});
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()), HasSubstr("state differs at step 8"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("in row 72"));
    }
  }
}

TEST(DigestTest, AMissingDigestIsRefused) {
  FeedbackSpec spec = SpecOf(FeedbackKind::kEf21);
  FeedbackPair pair(FeedbackOptionsOf(spec, kSample));
  spec.digest_every = 1;
  pair.receiver = std::move(*FeedbackReceiver::New(FeedbackOptionsOf(spec, kSample)));
  EXPECT_EQ(pair.Send(*CodecOf(TopKOf(0.1)), MessageOf(1, 1), {0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CheckpointTest, RestoredEndsGoOnBitByBit) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackSpec spec =
        SpecOf(kind, kind == FeedbackKind::kEf21 ? StateInit::kExact : StateInit::kZero);
    spec.store = StateStorage::kF16;
    FeedbackPair pair(FeedbackOptionsOf(spec, kSample));
    const auto codec = CodecOf(TopKOf(0.1));
    const std::vector<Rows> rows = RowsOf(StateKey::kSample);
    for (int step = 0; step < 40; ++step) {
      ASSERT_TRUE(pair.Send(*codec, MessageOf(rows[step].size(), step), rows[step]).ok());
    }
    FeedbackPair other(FeedbackOptionsOf(spec, kSample));
    const auto copy = [](StateStore* from, StateStore* to) {
      const auto stored = StoredRows(from);
      for (size_t i = 0; i < stored.size(); ++i) {
        ASSERT_TRUE(to->Restore(from->keys()[i], stored[i]).ok());
      }
    };
    copy(pair.sender->state(), other.sender->state());
    if (kind == FeedbackKind::kEf21) copy(pair.receiver->state(), other.receiver->state());
    for (int step = 40; step < 60; ++step) {
      const Tensor x = MessageOf(rows[step].size(), step);
      ASSERT_EQ(FloatsOf(*pair.Send(*codec, x, rows[step])),
                FloatsOf(*other.Send(*codec, x, rows[step])));
      ASSERT_EQ(pair.payload, other.payload);
    }
  }
}

TEST(FrozenTest, EvaluationReadsAndWritesNoState) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample));
    const auto codec = CodecOf(TopKOf(0.1));
    ASSERT_TRUE(pair.Send(*codec, MessageOf(2, 1), {0, 1}).ok());
    const auto before = StoredRows(pair.sender->state());
    FeedbackSender::Outgoing outgoing;
    outgoing.frozen = true;
    const Tensor x = MessageOf(3, 2);
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
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample));
    const Tensor x = MessageOf(4, 1);
    ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2, 3}).ok());
    const std::vector<uint8_t> cold = pair.payload;
    const Tensor factor = pair.sender->warm_start();
    ASSERT_FALSE(factor.empty());
    FeedbackSender::Outgoing outgoing;
    outgoing.frozen = true;
    ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2, 3}, outgoing).ok());
    EXPECT_EQ(BytesOf(pair.sender->warm_start()), BytesOf(factor));
    EXPECT_NE(pair.payload, cold);  // started from it all the same
    outgoing = {};
    outgoing.compress = false;
    ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2, 3}, outgoing).ok());
    EXPECT_EQ(BytesOf(pair.sender->warm_start()), BytesOf(factor));
    FeedbackPair other(FeedbackOptionsOf(SpecOf(kind), kSample));
    other.sender->set_warm_start(factor);
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
  const Tensor four = MessageOf(4, 1), three = MessageOf(3, 1);
  const auto last_of = [](const Tensor& factor) {
    const std::vector<float> all = FloatsOf(factor);
    return std::vector<float>(all.end() - static_cast<std::ptrdiff_t>(all.size() / 4), all.end());
  };
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kNone), kSample));
  ASSERT_TRUE(pair.Send(*codec, four, {0, 1, 2, 3}).ok());
  const std::vector<uint8_t> cold = pair.payload;
  const Tensor of_four = pair.sender->warm_start();
  ASSERT_TRUE(pair.Send(*codec, three, {0, 1, 2}).ok());
  const Tensor kept = pair.sender->warm_start();
  EXPECT_EQ(kept.shape(), of_four.shape());
  EXPECT_EQ(last_of(kept), last_of(of_four));
  EXPECT_NE(BytesOf(kept), BytesOf(of_four));
  ASSERT_TRUE(pair.Send(*codec, four, {0, 1, 2, 3}).ok());
  // One that never saw a smaller message.
  FeedbackPair always(FeedbackOptionsOf(SpecOf(FeedbackKind::kNone), kSample));
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

TEST(NonfiniteTest, IsRefusedAndLeavesStateAsItWasUnderEveryCodec) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    for (const CodecSpec& spec : Codecs()) {
      if (!CheckFeedbackOf(SpecOf(kind), spec).ok()) continue;
      for (const float value : {NAN, INFINITY}) {
        FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample));
        const auto codec = CodecOf(spec);
        ASSERT_TRUE(pair.Send(*codec, MessageOf(2, 1), {0, 1}).ok());
        const auto before = StoredRows(pair.sender->state());
        Tensor x = MessageOf(3, 2);
        x.floats()[5] = value;
        EXPECT_EQ(pair.Send(*codec, x, {0, 1, 2}).status().code(),
                  absl::StatusCode::kInvalidArgument)
            << spec.ToString();
        EXPECT_EQ(StoredRows(pair.sender->state()), before);
      }
    }
  }
}

TEST(NonfiniteTest, SentExactlyItDoesNotStayInState) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    for (const StateStorage store : {StateStorage::kF32, StateStorage::kQ8}) {
      FeedbackSpec spec = SpecOf(kind);
      spec.store = store;
      spec.digest_every = kind == FeedbackKind::kEf21 ? 1 : 0;
      FeedbackPair pair(FeedbackOptionsOf(spec, kSample));
      const auto codec = CodecOf(TopKOf(0.1));
      ASSERT_TRUE(pair.Send(*codec, MessageOf(3, 1), {0, 1, 2}).ok());
      Tensor x = MessageOf(3, 2);
      x.floats()[5] = NAN;
      FeedbackSender::Outgoing exact;
      exact.compress = false;
      EXPECT_TRUE(std::isnan(pair.Send(*codec, x, {0, 1, 2}, exact)->floats()[5]));
      const auto next = pair.Send(*codec, MessageOf(3, 3), {0, 1, 2});
      EXPECT_TRUE(next.ok()) << next.status();
    }
  }
}

// fp32 has finite numbers above the largest bf16, 3.39e38: at a bf16 receiver they are infinite.
TEST(NonfiniteTest, WhatOverflowsTheReceiversTypeDoesNotStayInState) {
  constexpr float kLargestBFloat = 0x1.FEp127f;
  CodecSpec fp16;
  fp16.kind = CodecKind::kFp16;
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf), {1, 2}, DType::kBF16));
  const auto codec = CodecOf(fp16);
  const auto send = [&](float value) {
    return pair.Send(*codec, BFloatTensorOf({1, 2}, {value, 1}), {0});
  };
  // A row that says: 0x1.8p119 is still to be sent.
  ASSERT_TRUE(pair.sender->state()
                  ->Restore(0, absl::MakeConstSpan(BytesOf(TensorOf({0x1.8p119f, 0}))))
                  .ok());
  ASSERT_EQ(FloatsOf(*send(kLargestBFloat))[0], INFINITY);
  // Beside such a value, 1 is nothing in fp16: it is still to be sent.
  EXPECT_EQ(StoredRows(pair.sender->state())[0], BytesOf(TensorOf({0, 1})));
  EXPECT_EQ(FloatsOf(*send(2)), std::vector<float>({2, 2}));
}

TEST(NonfiniteTest, ATrackedSumThatOverflowsBeginsAnewAtBothEnds) {
  FeedbackSpec spec = SpecOf(FeedbackKind::kEf21);
  spec.digest_every = 1;
  FeedbackPair pair(FeedbackOptionsOf(spec, {1, 2}));
  CodecSpec bf16;
  bf16.kind = CodecKind::kBf16;
  const auto codec = CodecOf(bf16);
  EXPECT_EQ(FloatsOf(*pair.Send(*codec, TensorOf({1, 2}, {FLT_MAX, 1}), {0}))[0], INFINITY);
  EXPECT_EQ(StoredRows(pair.receiver->state())[0], BytesOf(TensorOf({0, 1})));
  const auto next = pair.Send(*codec, TensorOf({1, 2}, {2, 1}), {0});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(FloatsOf(*next), std::vector<float>({2, 1}));
}

TEST(RefusalTest, AMalformedPayloadLeavesTheReceiversStateAsItWas) {
  for (const FeedbackKind kind : {FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample));
    const auto codec = CodecOf(TopKOf(0.1));
    ASSERT_TRUE(pair.Send(*codec, MessageOf(2, 1), {0, 1}).ok());
    const Rows rows = {0, 2};
    for (size_t length = 0; length < pair.payload.size(); ++length) {
      FeedbackReceiver::Incoming incoming;
      incoming.payload = absl::MakeConstSpan(pair.payload).subspan(0, length);
      incoming.shape = kSample.WithBatch(2);
      incoming.rows = rows;
      EXPECT_EQ(pair.receiver->Decode(*codec, incoming).status().code(),
                absl::StatusCode::kInvalidArgument)
          << length;
    }
    if (pair.receiver->state() != nullptr) {
      EXPECT_EQ(StoredRows(pair.receiver->state()), StoredRows(pair.sender->state()));
    }
  }
}

TEST(RefusalTest, RowsMustFitTheMessage) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf), kSample));
  const auto codec = CodecOf(TopKOf(0.1));
  const auto code = [&](const Tensor& x, const Rows& rows) {
    return pair.Send(*codec, x, rows).status().code();
  };
  EXPECT_EQ(code(MessageOf(2, 1), {4}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(MessageOf(2, 1), {4, 4}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(TensorOf({2, 96}, RandomValues(192, 1)), {4, 5}),
            absl::StatusCode::kInvalidArgument);
  CodecSpec unbiased;
  unbiased.kind = CodecKind::kRandomK;
  unbiased.ratio = 0.1;
  unbiased.unbiased = true;
  EXPECT_EQ(pair.Send(*CodecOf(unbiased), MessageOf(1, 1), {4}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FeedbackTest, EmptyMessagesTravel) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample));
    EXPECT_TRUE(pair.Send(*CodecOf(TopKOf(0.1)), MessageOf(0, 1), {}).ok());
  }
}

TEST(FeedbackTest, MemoryIsTakenByTheLargestMessageOnly) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSample));
    const auto codec = CodecOf(TopKOf(0.1));
    const Tensor x = MessageOf(4, 1), part = MessageOf(2, 1);
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

}  // namespace
}  // namespace thinwire
