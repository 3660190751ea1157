#include "wire/frame_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "wire/link_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Returns the frames of an activation that DownstreamOptions() accept, as headers and sizes.
std::vector<ParsedFrame> Frames(size_t payload_bytes) {
  std::vector<ParsedFrame> frames;
  for (const OutgoingFrame& outgoing :
       ToFrames(TestMessage(DIRECTION_ACTIVATION, payload_bytes), 77, 5)) {
    absl::StatusOr<ParsedFrame> frame =
        ParseFrame({BytesOf(outgoing.prefix), outgoing.payload.bytes});
    EXPECT_TRUE(frame.ok()) << frame.status();
    frame->payload.clear();  // would dangle
    frames.push_back(*std::move(frame));
  }
  return frames;
}

using Change = std::function<void(FrameHeader*)>;

// Checks the first frame of a message of one or three chunks after `change` has edited it.
absl::Status CheckFirst(const Change& change, size_t payload_bytes = 1000) {
  ParsedFrame frame = Frames(payload_bytes)[0];
  change(&frame.header);
  return FrameChecker(DownstreamOptions()).Check(frame).status();
}

// Checks the second of three frames after `change` has edited it.
absl::Status CheckSecond(const Change& change) {
  std::vector<ParsedFrame> frames = Frames(9 << 20);
  FrameChecker checker(DownstreamOptions());
  EXPECT_TRUE(checker.Check(frames[0]).ok());
  change(&frames[1].header);
  return checker.Check(frames[1]).status();
}

void ExpectInvalid(const absl::Status& status, const std::string& says) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cut layer3, from stage 3: " + says));
}

void ExpectFenced(const absl::Status& status, const std::string& says) {
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cut layer3, from stage 3: " + says));
}

TEST(FrameCheckerTest, AcceptsMessagesOneAfterTheOther) {
  FrameChecker checker(DownstreamOptions());
  for (size_t bytes : {size_t{0}, size_t{1}, kMaxChunkBytes, kMaxChunkBytes + 1, size_t{9} << 20}) {
    for (const ParsedFrame& frame : Frames(bytes)) EXPECT_TRUE(checker.Check(frame).ok());
  }
}

TEST(FrameCheckerTest, FencesOtherRunsAndGenerations) {
  ExpectFenced(CheckFirst([](FrameHeader* h) { h->set_run(78); }),
               "run of the frame is 78, this stage holds 77");
  ExpectFenced(CheckFirst([](FrameHeader* h) { h->set_generation(4); }),
               "generation of the frame is 4, this stage holds 5");
  ExpectFenced(CheckFirst([](FrameHeader* h) { h->set_generation(6); }),
               "generation of the frame is 6, this stage holds 5");
  ExpectFenced(CheckSecond([](FrameHeader* h) { h->set_generation(4); }),
               "generation of the frame is 4, this stage holds 5");
}

TEST(FrameCheckerTest, RefusesAnotherCutOrDirection) {
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_cut(4); }), "cut is 4, want 3");
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_direction(DIRECTION_GRADIENT); }),
                "direction is 2, want 1");
}

TEST(FrameCheckerTest, RefusesUnknownPhases) {
  EXPECT_TRUE(CheckFirst([](FrameHeader* h) { h->set_phase(PHASE_GENERATE); }).ok());
  EXPECT_TRUE(CheckFirst([](FrameHeader* h) { h->set_phase(PHASE_CALIBRATE); }).ok());
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_phase(PHASE_UNSPECIFIED); }),
                "phase is 0, want 1 to 8");
  // What replicas exchange crosses no cut.
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_phase(PHASE_CONTRIBUTION); }),
                "phase is 9, want 1 to 8");
}

TEST(FrameCheckerTest, ASumOfSquaresComesInItsPhaseAndWithoutATensor) {
  const auto sum = [](double value) {
    return [value](FrameHeader* h) {
      h->set_phase(PHASE_GRADIENT_NORM);
      h->set_sum_of_squares(value);
    };
  };
  for (double value : {0.0, 1e300}) EXPECT_TRUE(CheckFirst(sum(value), 0).ok()) << value;
  ExpectInvalid(CheckFirst(sum(-1), 0), "sum_of_squares is -1, want 0 to");
  ExpectInvalid(CheckFirst(sum(std::nan("")), 0), "sum_of_squares is nan, want 0 to");
  ExpectInvalid(CheckFirst(sum(std::numeric_limits<double>::infinity()), 0),
                "sum_of_squares is inf, want 0 to");
  ExpectInvalid(CheckFirst(sum(1)), "payload_bytes is 1000, want 0");
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_phase(PHASE_GRADIENT_NORM); }, 0),
                "presence of sum_of_squares is 0, want 1");
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_sum_of_squares(1); }),
                "presence of sum_of_squares is 1, want 0");
}

TEST(FrameCheckerTest, RefusesChunksOutOfOrder) {
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_chunk(1); }), "chunk is 1, want 0");
  ExpectInvalid(CheckSecond([](FrameHeader* h) { h->set_chunk(2); }), "chunk is 2, want 1");
  ExpectInvalid(CheckSecond([](FrameHeader* h) { h->set_chunk(0); }), "chunk is 0, want 1");
}

TEST(FrameCheckerTest, RefusesChunkCountsThatDoNotFitThePayload) {
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_chunks(0); }), "chunks is 0, want 1");
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->set_chunks(2); }), "chunks is 2, want 1");
  ExpectInvalid(CheckSecond([](FrameHeader* h) { h->set_chunks(4); }), "chunks is 4, want 3");
}

TEST(FrameCheckerTest, RefusesAnotherMessageWithinAMessage) {
  ExpectInvalid(CheckSecond([](FrameHeader* h) { h->set_epoch(9); }), "epoch is 9, want 2");
  ExpectInvalid(CheckSecond([](FrameHeader* h) { h->set_step(9); }), "step is 9, want 1234567");
  ExpectInvalid(CheckSecond([](FrameHeader* h) { h->set_microbatch(9); }),
                "microbatch is 9, want 0");
  ExpectInvalid(CheckSecond([](FrameHeader* h) { h->set_phase(PHASE_EVALUATE_COMPRESSED); }),
                "phase is 2, want 1");
}

TEST(FrameCheckerTest, RefusesAClaimOfTwoGibibytesInASmallFrame) {
  const Change claim = [](FrameHeader* h) {
    h->set_payload_bytes(uint64_t{2} << 30);
    h->set_chunks(512);
  };
  ExpectInvalid(CheckFirst(claim), "payload_bytes is 2147483648, want 0 to 33554432");
  // Even if the limit allows that size, the first chunk must be a full one.
  LinkOptions generous = DownstreamOptions();
  generous.max_payload_bytes = uint64_t{4} << 30;
  ParsedFrame frame = Frames(1000)[0];
  claim(&frame.header);
  ExpectInvalid(FrameChecker(generous).Check(frame).status(),
                "bytes of payload in the chunk is 1000, want 4194304");
}

TEST(FrameCheckerTest, RefusesClaimsWhoseChunkCountWrapsAround) {
  LinkOptions generous = DownstreamOptions();
  generous.max_payload_bytes = ~uint64_t{0};
  ParsedFrame frame = Frames(1000)[0];
  frame.header.set_payload_bytes((uint64_t{1} << 54) + 1000);  // 2^32 + 1 chunks
  EXPECT_TRUE(absl::IsInvalidArgument(FrameChecker(generous).Check(frame).status()));
}

TEST(FrameCheckerTest, RefusesChunksOfAnotherLength) {
  ParsedFrame shorter = Frames(1000)[0];
  shorter.payload_bytes = 999;
  ExpectInvalid(FrameChecker(DownstreamOptions()).Check(shorter).status(),
                "bytes of payload in the chunk is 999, want 1000");
  ParsedFrame longer = Frames(1000)[0];
  longer.payload_bytes = 1001;
  ExpectInvalid(FrameChecker(DownstreamOptions()).Check(longer).status(),
                "bytes of payload in the chunk is 1001, want 1000");
}

TEST(FrameCheckerTest, RefusesUnknownElementTypes) {
  const auto with = [](int number) {
    return
        [number](FrameHeader* h) { h->set_dtype(static_cast<FrameHeader::ElementType>(number)); };
  };
  ExpectInvalid(CheckFirst(with(0)), "dtype is 0, want 1 to 3");
  ExpectInvalid(CheckFirst(with(4)), "dtype is 4, want 1 to 3");  // int32: tokens
  ExpectInvalid(CheckFirst(with(257)), "dtype is 257, want 1 to 3");
  ExpectInvalid(CheckFirst(with(-1)), "dtype is -1, want 1 to 3");
}

TEST(FrameCheckerTest, RefusesShapesThatCannotBe) {
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->clear_shape(); }),
                "rank of shape is 0, want 1 to 6");
  ExpectInvalid(CheckFirst([](FrameHeader* h) {
                  for (int i = 0; i < 3; ++i) h->add_shape(2);
                }),
                "rank of shape is 7, want 1 to 6");
  ExpectInvalid(CheckFirst([](FrameHeader* h) {
                  for (int i = 0; i < 2; ++i) h->set_shape(i, ~0u);
                }),
                "shape: extent");
}

TEST(FrameCheckerTest, AcceptsShapesWithoutElements) {
  EXPECT_TRUE(CheckFirst([](FrameHeader* h) { h->set_shape(0, 0); }, 0).ok());
}

TEST(FrameCheckerTest, RefusesUnknownCodecNumbers) {
  const auto changed = [](const std::function<void(CodecParameters*)>& change) {
    return CheckFirst([&](FrameHeader* h) { change(h->mutable_codec()); });
  };
  ExpectInvalid(changed([](auto* c) { c->set_kind(static_cast<CodecParameters::Kind>(99)); }),
                "codec.kind is 99, want a known number");
  ExpectInvalid(changed([](auto* c) { c->set_scope(static_cast<CodecParameters::Scope>(99)); }),
                "codec.scope is 99, want a known number");
  ExpectInvalid(changed([](auto* c) { c->clear_values(); }),
                "codec.values is 0, want a known number");
}

TEST(FrameCheckerTest, RefusesAParameterThatTheCodecDoesNotHave) {
  ExpectInvalid(CheckFirst([](FrameHeader* h) { h->mutable_codec()->set_threshold(0.5); }),
                "codec.threshold is 0.5, want none: it has no say in topk(");
}

// Links among carriers take what replicas exchange, of any piece, and nothing else; cuts take none
// of it.
TEST(FrameCheckerTest, WhatReplicasExchangeHasLinksOfItsOwn) {
  LinkOptions among = DownstreamOptions();
  among.is_among_carriers = true;
  among.receives = DIRECTION_GRADIENT;
  const auto check = [](const LinkOptions& options, Phase phase, Direction direction) {
    ParsedFrame frame = Frames(1000)[0];
    frame.header.set_phase(phase);
    frame.header.set_direction(direction);
    frame.header.set_cut(65537);
    return FrameChecker(options).Check(frame).status();
  };
  EXPECT_TRUE(check(among, PHASE_CONTRIBUTION, DIRECTION_GRADIENT).ok());
  EXPECT_TRUE(check(among, PHASE_AVERAGE, DIRECTION_GRADIENT).ok());
  EXPECT_TRUE(check(among, PHASE_SECOND_AVERAGE, DIRECTION_GRADIENT).ok());
  EXPECT_THAT(std::string(check(among, PHASE_TRAIN, DIRECTION_GRADIENT).message()),
              HasSubstr("layer3, from stage 3: phase is 1, want 9 to 12"));
  EXPECT_THAT(std::string(check(among, PHASE_AVERAGE, DIRECTION_ACTIVATION).message()),
              HasSubstr("direction is 1, want 2"));
  ExpectInvalid(CheckFirst([](FrameHeader* header) { header->set_phase(PHASE_CONTRIBUTION); }),
                "phase is 9, want 1 to 8");
}

TEST(FrameCheckerTest, AllChunksOfAContributionAreOfOnePiece) {
  LinkOptions among = DownstreamOptions();
  among.is_among_carriers = true;
  among.receives = DIRECTION_GRADIENT;
  std::vector<ParsedFrame> frames = Frames(9 << 20);
  for (ParsedFrame& frame : frames) {
    frame.header.set_phase(PHASE_CONTRIBUTION);
    frame.header.set_direction(DIRECTION_GRADIENT);
  }
  FrameChecker checker(among);
  EXPECT_TRUE(checker.Check(frames[0]).ok());
  frames[1].header.set_cut(frames[0].header.cut() + 1);
  EXPECT_THAT(std::string(checker.Check(frames[1]).status().message()), HasSubstr(", want 3"));
}

}  // namespace
}  // namespace thinwire
