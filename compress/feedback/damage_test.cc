// Tests of what must not stay in state or pass unnoticed: ends that differ, values that are not
// finite, payloads and rows that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "compress/feedback/feedback.h"
#include "compress/feedback/pair_testing.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

TEST(DigestTest, AFlippedBitIsCaughtAndNamedAtTheNextDigestOfItsRow) {
  for (const StateStorage storage : {StateStorage::kF32, StateStorage::kQ4}) {
    for (const bool at_sender : {true, false}) {
      FeedbackSpec spec = SpecOf(FeedbackKind::kEf21);
      spec.digest_every = 4;
      spec.store = storage;
      FeedbackPair pair(FeedbackOptionsOf(spec, kSampleShape));
      CodecSpec by_sample = TopKOf(0.1);
      by_sample.scope = Scope::kSample;
      const auto codec = CodecOf(by_sample);
      FeedbackSender::Outgoing outgoing;
      const auto send = [&](uint64_t step, const Rows& rows) {
        outgoing.step = step;
        return pair.Send(*codec, RandomMessage(rows.size(), 7), rows, outgoing).status();
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
  FeedbackPair pair(FeedbackOptionsOf(spec, kSampleShape));
  spec.digest_every = 1;
  pair.receiver = std::move(*FeedbackReceiver::New(FeedbackOptionsOf(spec, kSampleShape)));
  EXPECT_EQ(pair.Send(*CodecOf(TopKOf(0.1)), RandomMessage(1, 1), {0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(NonfiniteTest, IsRefusedAndLeavesStateAsItWasUnderEveryCodec) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    for (const CodecSpec& spec : SomeCodecs()) {
      if (!CheckFeedbackOf(SpecOf(kind), spec).ok()) continue;
      for (const float value : {NAN, INFINITY}) {
        FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
        const auto codec = CodecOf(spec);
        ASSERT_TRUE(pair.Send(*codec, RandomMessage(2, 1), {0, 1}).ok());
        const auto before = StoredRows(pair.sender->state());
        Tensor x = RandomMessage(3, 2);
        x.floats()[5] = value;
        EXPECT_EQ(pair.Send(*codec, x, {0, 1, 2}).status().code(), absl::StatusCode::kOutOfRange)
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
      FeedbackPair pair(FeedbackOptionsOf(spec, kSampleShape));
      const auto codec = CodecOf(TopKOf(0.1));
      ASSERT_TRUE(pair.Send(*codec, RandomMessage(3, 1), {0, 1, 2}).ok());
      Tensor x = RandomMessage(3, 2);
      x.floats()[5] = NAN;
      FeedbackSender::Outgoing exact;
      exact.compress = false;
      EXPECT_TRUE(std::isnan(pair.Send(*codec, x, {0, 1, 2}, exact)->floats()[5]));
      const auto next = pair.Send(*codec, RandomMessage(3, 3), {0, 1, 2});
      EXPECT_TRUE(next.ok()) << next.status();
    }
  }
}

// Tests fp32 numbers above the largest bf16, 3.39e38: they are finite, but infinite at a bf16
// receiver.
TEST(NonfiniteTest, WhatOverflowsTheReceiversTypeDoesNotStayInState) {
  constexpr float kLargestBFloat = 0x1.FEp127f;
  CodecSpec fp16;
  fp16.kind = CodecKind::kFp16;
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf), {1, 2}, DType::kBF16));
  const auto codec = CodecOf(fp16);
  const auto send = [&](float value) {
    return pair.Send(*codec, BFloatTensorOf({1, 2}, {value, 1}), {0});
  };
  // A row in which 0x1.8p119 is still to be sent.
  ASSERT_TRUE(pair.sender->state()
                  ->Restore(0, absl::MakeConstSpan(BytesOf(TensorOf({0x1.8p119f, 0}))))
                  .ok());
  ASSERT_EQ(FloatsOf(*send(kLargestBFloat))[0], INFINITY);
  // Beside such a value fp16 loses 1, which is still to be sent.
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
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
    const auto codec = CodecOf(TopKOf(0.1));
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(2, 1), {0, 1}).ok());
    const Rows rows = {0, 2};
    for (size_t length = 0; length < pair.payload.size(); ++length) {
      FeedbackReceiver::Incoming incoming;
      incoming.payload = absl::MakeConstSpan(pair.payload).subspan(0, length);
      incoming.shape = kSampleShape.WithBatch(2);
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
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf), kSampleShape));
  const auto codec = CodecOf(TopKOf(0.1));
  const auto code = [&](const Tensor& x, const Rows& rows) {
    return pair.Send(*codec, x, rows).status().code();
  };
  EXPECT_EQ(code(RandomMessage(2, 1), {4}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(RandomMessage(2, 1), {4, 4}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(TensorOf({2, 96}, RandomValues(192, 1)), {4, 5}),
            absl::StatusCode::kInvalidArgument);
  CodecSpec unbiased;
  unbiased.kind = CodecKind::kRandomK;
  unbiased.ratio = 0.1;
  unbiased.unbiased = true;
  EXPECT_EQ(pair.Send(*CodecOf(unbiased), RandomMessage(1, 1), {4}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thinwire
