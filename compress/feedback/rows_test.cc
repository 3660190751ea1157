// Tests of rows of state at both ends: new ones, and those that find no room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compress/feedback/feedback.h"
#include "compress/feedback/pair_testing.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

TEST(FirstVisitTest, GoesExactOncePerRow) {
  FeedbackPair pair(
      FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21, StateInit::kExact), kSampleShape));
  const auto codec = CodecOf(TopKOf(0.1));
  const auto first_visit = [&](const Rows& rows) {
    const auto received = pair.Send(*codec, RandomMessage(rows.size(), rows[0]), rows);
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
  FeedbackPair pair(
      FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21, StateInit::kExact), kSampleShape));
  const auto codec = CodecOf(TopKOf(0.1));
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(2, 1), {41, 42}).ok());
  ASSERT_TRUE(pair.receiver->state()->Clear().ok());
  FeedbackSender::Outgoing outgoing;
  outgoing.step = 17;
  const absl::Status forgot = pair.Send(*codec, RandomMessage(2, 1), {41, 42}, outgoing).status();
  EXPECT_EQ(forgot.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(forgot.message()), HasSubstr("DESYNC"));
  EXPECT_THAT(std::string(forgot.message()), HasSubstr("step 17"));
  EXPECT_THAT(std::string(forgot.message()), HasSubstr("41, 42"));
  ASSERT_TRUE(pair.sender->state()->Clear().ok());
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(2, 1), {41, 42}).ok());
  ASSERT_TRUE(pair.sender->state()->Clear().ok());
  EXPECT_EQ(pair.Send(*codec, RandomMessage(2, 1), {41, 42}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

FeedbackSpec LimitedSpec(FeedbackKind kind, OnFull on_full, StateInit init = StateInit::kZero) {
  FeedbackSpec spec = SpecOf(kind, init);
  spec.limit_bytes = 3 * 4 * kSampleElements;
  spec.on_full = on_full;
  spec.digest_every = kind == FeedbackKind::kEf21 ? 1 : 0;
  return spec;
}

TEST(OnFullTest, ErrorNamesLimitBytesAndRows) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair pair(FeedbackOptionsOf(LimitedSpec(kind, OnFull::kError), kSampleShape));
    const auto codec = CodecOf(TopKOf(0.1));
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(2, 1), {1, 2}).ok());
    const absl::Status status = pair.Send(*codec, RandomMessage(3, 2), {2, 33, 34}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    for (const char* part : {"1152", "1536", "33, 34"}) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    }
    FeedbackSender::Outgoing exact;
    exact.compress = false;
    EXPECT_EQ(pair.Send(*codec, RandomMessage(3, 2), {2, 33, 34}, exact).status(), status);
    EXPECT_TRUE(pair.Send(*codec, RandomMessage(2, 3), {2, 3}).ok());  // state was as before
  }
}

TEST(OnFullTest, PlainRowsTravelAsIfTheirStateWereZero) {
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair limited(FeedbackOptionsOf(LimitedSpec(kind, OnFull::kPlain), kSampleShape));
    FeedbackPair unlimited(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
    CodecSpec by_sample = TopKOf(0.1);
    by_sample.scope = Scope::kSample;
    const auto codec = CodecOf(by_sample);
    for (uint64_t step = 0; step < 5; ++step) {
      const Tensor x = RandomMessage(4, step);
      FeedbackSender::Outgoing outgoing;
      outgoing.want_received = true;
      outgoing.step = step;
      const Tensor received = *limited.Send(*codec, x, {10, 11, 12, 13}, outgoing);
      EXPECT_EQ(FloatsOf(received), FloatsOf(limited.encoded.received));
      // Row 13 found no room; the others are as without a limit.
      std::vector<float> want = FloatsOf(*unlimited.Send(*codec, x, {10, 11, 12, 13}));
      const std::vector<float> plain = *RoundTrip(by_sample, x);
      std::copy(plain.end() - kSampleElements, plain.end(), want.end() - kSampleElements);
      EXPECT_EQ(FloatsOf(received), want) << "step " << step;
    }
    EXPECT_EQ(limited.sender->state()->keys(), Rows({10, 11, 12}));
  }
}

TEST(OnFullTest, RowsWithoutRoomAreNoFirstVisits) {
  FeedbackPair pair(FeedbackOptionsOf(
      LimitedSpec(FeedbackKind::kEf21, OnFull::kPlain, StateInit::kExact), kSampleShape));
  const auto codec = CodecOf(TopKOf(0.1));
  const auto first_visit = [&](const Rows& rows) {
    const auto received = pair.Send(*codec, RandomMessage(rows.size(), rows[0]), rows);
    EXPECT_TRUE(received.ok()) << received.status();
    return pair.encoded.first_visit;
  };
  EXPECT_TRUE(first_visit({1, 2}));
  EXPECT_TRUE(first_visit({3, 4}));  // 3 finds room
  EXPECT_FALSE(first_visit({4, 5}));
  EXPECT_FALSE(first_visit({3, 4}));
}

}  // namespace
}  // namespace thinwire
