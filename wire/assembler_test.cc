#include "wire/assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensor/cpu/device.h"
#include "wire/link_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Views the payload of `outgoing`, whose owner must live on.
ParsedFrame Parsed(const OutgoingFrame& outgoing) {
  const std::string bytes =
      outgoing.prefix + std::string(outgoing.payload.bytes.begin(), outgoing.payload.bytes.end());
  absl::StatusOr<ParsedFrame> frame =
      ParseFrame({ByteSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())});
  EXPECT_TRUE(frame.ok()) << frame.status();
  frame->payload.assign(1, outgoing.payload.bytes);
  return *std::move(frame);
}

TEST(AssemblerTest, GivesTheMessageWithItsLastChunk) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 9 << 20);
  const std::vector<OutgoingFrame> frames = ToFrames(sent, 77, 5);
  Assembler assembler(DownstreamOptions());
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<std::optional<Message>> added = assembler.Add(Parsed(frames[i]));
    ASSERT_TRUE(added.ok()) << added.status();
    EXPECT_FALSE(added->has_value());
  }
  const absl::StatusOr<std::optional<Message>> added = assembler.Add(Parsed(frames[2]));
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_TRUE(added->has_value());
  EXPECT_TRUE(SameMessage(**added, sent));
}

TEST(AssemblerTest, GathersAPayloadHoweverItIsScattered) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 1000);
  ParsedFrame frame = Parsed(ToFrames(sent, 77, 5)[0]);
  frame.payload.clear();
  for (size_t at = 0; at < 1000; at += 33) {
    frame.payload.push_back(sent.payload.bytes.subspan(at, 33));
  }
  const absl::StatusOr<std::optional<Message>> added = Assembler(DownstreamOptions()).Add(frame);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_TRUE(SameMessage(**added, sent));
}

TEST(AssemblerTest, EveryBitOfThePayloadIsGuarded) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 40);
  const ParsedFrame frame = Parsed(ToFrames(sent, 77, 5)[0]);
  for (int bit = 0; bit < 40 * 8; ++bit) {
    std::vector<uint8_t> damaged(sent.payload.bytes.begin(), sent.payload.bytes.end());
    damaged[bit / 8] ^= 1 << bit % 8;
    ParsedFrame bad = frame;
    bad.payload.assign(1, damaged);
    EXPECT_TRUE(absl::IsDataLoss(Assembler(DownstreamOptions()).Add(bad).status())) << bit;
  }
}

TEST(AssemblerTest, ADamagedPayloadNamesCutPeerMessageChunkAndChecksums) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 40, 6);
  ParsedFrame frame = Parsed(ToFrames(sent, 77, 5)[0]);
  frame.header.set_payload_crc32c(0x12345678);
  const absl::Status status = Assembler(DownstreamOptions()).Add(frame).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut layer3, from stage 3: training activation of cut 3, epoch 2, step "
                        "1234567, microbatch 6: payload_crc32c of chunk 0 is 0x12345678, the "
                        "payload's bytes give 0x"));
}

TEST(AssemblerTest, APayloadReturnsToTheDevicesPool) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 1000);
  const ParsedFrame frame = Parsed(ToFrames(sent, 77, 5)[0]);
  const size_t before = CpuDevice()->bytes_in_use();
  {
    const absl::StatusOr<std::optional<Message>> added = Assembler(DownstreamOptions()).Add(frame);
    ASSERT_TRUE(added.ok()) << added.status();
    EXPECT_GT(CpuDevice()->bytes_in_use(), before);
  }
  EXPECT_EQ(CpuDevice()->bytes_in_use(), before);
}

}  // namespace
}  // namespace thinwire
