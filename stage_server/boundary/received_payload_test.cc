#include "stage_server/boundary/received_payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "compress/cpu/kernels.h"
#include "compress/sample_specs_testing.h"
#include "stage_server/boundary/boundary_testing.h"
#include "stage_server/boundary/decoder.h"
#include "stage_server/boundary/encoder.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;

constexpr int64_t kSamples = 2, kPositions = 8, kFeatures = 64;

BoundarySpec SpecOf(const CodecSpec& codec) {
  BoundarySpec spec;
  spec.name = "layer1";
  spec.direction = DIRECTION_ACTIVATION;
  spec.sample = {1, kPositions, kFeatures};
  spec.max_batch = kSamples;
  spec.device = CpuDevice();
  spec.kernels = CpuCodecKernels();
  spec.codec = codec;
  return spec;
}

Tensor Numbers(uint64_t seed) {
  Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, {kSamples, kPositions, kFeatures});
  for (size_t i = 0; i < x.floats().size(); ++i) {
    x.floats()[i] = static_cast<float>(Philox(seed, i)[0]) * 0x1p-31f - 1;
  }
  return x;
}

// Returns the message of a step, as it comes.
Message MessageOf(MessageEncoder* encoder, uint64_t step) {
  MessageEncoder::Outgoing outgoing;
  outgoing.key = {PHASE_TRAIN, DIRECTION_ACTIVATION, 0, 1, step, 0};
  outgoing.compress = true;
  outgoing.x = Numbers(step);
  return encoder->Encode(outgoing)->message;
}

// Decodes several messages in their order, and the first of them once more. Returns whether that
// was possible.
bool GivesTheSameAgain(const CodecSpec& codec) {
  SCOPED_TRACE(codec.ToString());
  const BoundarySpec spec = SpecOf(codec);
  const auto encoder = *MessageEncoder::New(spec, /*support=*/nullptr, LeftOnDevice::kNone);
  const auto decoder = *MessageDecoder::New(spec, /*support=*/nullptr);
  const Message first = MessageOf(encoder.get(), 1);
  const Tensor x = *decoder->Decode(first, nullptr);
  if (!decoder->DecodedAlone(first)) return false;
  const auto payload = *ReceivedPayload::Of(spec, first);
  const size_t most = x.bytes() / 2;
  EXPECT_EQ(payload == nullptr, first.payload.bytes.size() > most);
  if (payload == nullptr) return false;
  EXPECT_EQ(payload->bytes(), first.payload.bytes.size());
  std::vector<Message> later;
  for (uint64_t step = 2; step < 4; ++step) {
    later.push_back(MessageOf(encoder.get(), step));
    EXPECT_TRUE(decoder->Decode(later.back(), nullptr).ok());
  }
  const Tensor again = *payload->Decode(CpuCodecKernels());
  EXPECT_NE(again.data(), x.data());
  EXPECT_THAT(again.floats(), ElementsAreArray(x.floats()));
  return true;
}

TEST(ReceivedPayloadTest, CodecsWithoutStateGiveTheSameAgain) {
  int again = 0;
  for (const CodecRow& row : CodecRows()) {
    if (row.is_plugin) continue;
    for (const CodecSpec& spec : SampleSpecs(row)) {
      if (!spec.needs_support()) again += GivesTheSameAgain(spec);
    }
  }
  EXPECT_GT(again, 20);
}

TEST(ReceivedPayloadTest, WhatFollowsFromEarlierMessagesIsNotMadeAgain) {
  CodecSpec low_rank = DefaultSpec(CodecKind::kLowRank);
  low_rank.rank = 2;
  CodecSpec principal = DefaultSpec(CodecKind::kEcsq);
  principal.rotation = Rotation::kPrincipal;
  principal.rotation_every = 2;
  CodecSpec outliers = DefaultSpec(CodecKind::kUniform);
  outliers.bits = 4;
  outliers.outliers = 2;
  for (const CodecSpec& codec : {low_rank, principal, outliers}) EXPECT_FALSE(GivesTheSameAgain(codec));
  EXPECT_FALSE(GivesTheSameAgain(CodecSpec()));
}

TEST(ReceivedPayloadTest, ItOutlivesTheMemoryOfTheMessage) {
  CodecSpec codec = DefaultSpec(CodecKind::kUniform);
  codec.bits = 4;
  const BoundarySpec spec = SpecOf(codec);
  const auto encoder = *MessageEncoder::New(spec, /*support=*/nullptr, LeftOnDevice::kNone);
  const auto decoder = *MessageDecoder::New(spec, /*support=*/nullptr);
  const Message message = MessageOf(encoder.get(), 1);
  const Tensor x = *decoder->Decode(message, nullptr);
  const auto payload = *ReceivedPayload::Of(spec, message);
  std::memset(const_cast<uint8_t*>(message.payload.bytes.data()), 0xff,
              message.payload.bytes.size());
  EXPECT_THAT(payload->Decode(CpuCodecKernels())->floats(), ElementsAreArray(x.floats()));
}

class KeptPayloadTest : public BoundaryTest {};

TEST_P(KeptPayloadTest, TheReceiverKeepsPayloadsOfTrainingWhereItIsAsked) {
  constexpr int64_t kElements = 256;
  spec_.codec.ratio = 0.1;
  spec_.sample = {1, kElements};
  std::vector<float> values(kElements);
  for (int64_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i % 17);
  for (const bool keeps : {false, true}) {
    Make(GetParam(), [keeps](BoundarySpec* receiver) { receiver->keeps_payloads = keeps; });
    StartEpoch();
    ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of(values)).ok());
    const auto received = receiver_->Receive(Expect(1), Soon());
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_EQ(received->payload != nullptr, keeps);
    if (!keeps) continue;
    EXPECT_THAT(received->payload->Decode(CpuCodecKernels())->floats(),
                ElementsAreArray(received->tensor.floats()));
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, KeptPayloadTest,
                         ::testing::Values(Worker::kOwnThread, Worker::kInline));

}  // namespace
}  // namespace thinwire
