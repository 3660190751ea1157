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

// Returns the chunks of `message`; their payloads refer to its own.
std::vector<PayloadChunk> Chunks(const Message& message) {
  FrameChecker checker(DownstreamOptions());
  std::vector<PayloadChunk> chunks;
  for (const OutgoingFrame& outgoing : ToFrames(message, 77, 5)) {
    const absl::StatusOr<ParsedFrame> frame =
        ParseFrame({BytesOf(outgoing.prefix), outgoing.payload.bytes});
    EXPECT_TRUE(frame.ok()) << frame.status();
    const absl::StatusOr<PayloadChunk> chunk = checker.Check(*frame);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    chunks.push_back(*chunk);
  }
  return chunks;
}

TEST(AssemblerTest, GivesTheMessageWithItsLastChunk) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 9 << 20);
  const std::vector<PayloadChunk> chunks = Chunks(sent);
  Assembler assembler(DownstreamOptions());
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<std::optional<Message>> added = assembler.Add(chunks[i]);
    ASSERT_TRUE(added.ok()) << added.status();
    EXPECT_FALSE(added->has_value());
  }
  const absl::StatusOr<std::optional<Message>> added = assembler.Add(chunks[2]);
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_TRUE(added->has_value());
  EXPECT_TRUE(SameMessage(**added, sent));
}

TEST(AssemblerTest, GathersAPayloadHoweverItIsScattered) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 1000);
  PayloadChunk chunk = Chunks(sent)[0];
  chunk.payload.clear();
  for (size_t at = 0; at < 1000; at += 33) {
    chunk.payload.push_back(sent.payload.bytes.subspan(at, 33));
  }
  const absl::StatusOr<std::optional<Message>> added = Assembler(DownstreamOptions()).Add(chunk);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_TRUE(SameMessage(**added, sent));
}

TEST(AssemblerTest, EveryBitOfThePayloadIsGuarded) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 40);
  const PayloadChunk chunk = Chunks(sent)[0];
  for (int bit = 0; bit < 40 * 8; ++bit) {
    std::vector<uint8_t> damaged(sent.payload.bytes.begin(), sent.payload.bytes.end());
    damaged[bit / 8] ^= 1 << bit % 8;
    PayloadChunk bad = chunk;
    bad.payload.assign(1, damaged);
    EXPECT_TRUE(absl::IsDataLoss(Assembler(DownstreamOptions()).Add(bad).status())) << bit;
  }
}

TEST(AssemblerTest, ADamagedPayloadNamesCutPeerMessageChunkAndChecksums) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 40, 6);
  PayloadChunk chunk = Chunks(sent)[0];
  chunk.payload_crc32c = 0x12345678;
  const absl::Status status = Assembler(DownstreamOptions()).Add(chunk).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut layer3, from stage 3: training activation of cut 3, epoch 2, step "
                        "1234567, microbatch 6: payload_crc32c of chunk 0 is 0x12345678, the "
                        "payload's bytes, which came by the socket, give 0x"));
}

TEST(AssemblerTest, APayloadReturnsToTheDevicesPool) {
  const Message sent = TestMessage(DIRECTION_ACTIVATION, 1000);
  const PayloadChunk chunk = Chunks(sent)[0];
  const size_t before = CpuDevice()->bytes_in_use();
  {
    const absl::StatusOr<std::optional<Message>> added = Assembler(DownstreamOptions()).Add(chunk);
    ASSERT_TRUE(added.ok()) << added.status();
    EXPECT_GT(CpuDevice()->bytes_in_use(), before);
  }
  EXPECT_EQ(CpuDevice()->bytes_in_use(), before);
}

}  // namespace
}  // namespace thinwire
