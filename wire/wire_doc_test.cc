// Checks that the worked example of docs/wire.md is a frame that we read and write as it says.

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "wire/assembler.h"
#include "wire/frame.h"
#include "wire/frame_checker.h"

namespace thinwire {
namespace {

// Returns the bytes of the page's block ```hex, without comments after #.
std::string ExampleBytes() {
  std::ifstream page("docs/wire.md");
  std::string line, bytes;
  while (std::getline(page, line) && line != "```hex") {
  }
  while (std::getline(page, line) && line != "```") {
    std::string digits;
    for (char c : line.substr(0, line.find('#'))) {
      if (c != ' ') digits += c;
    }
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
  }
  return bytes;
}

Message ExampleMessage() {
  static constexpr uint8_t kPayload[] = {0x00, 0x33, 0x66, 0x99, 0xCC, 0xFF};
  Message message;
  message.key = {PHASE_TRAIN, DIRECTION_ACTIVATION, 1, 1, 7, 2};
  message.shape = Shape{2, 3};
  message.codec.kind = CodecKind::kUniform;
  message.codec.bits = 8;
  message.sample_digest = 0x1122334455667788u;
  message.payload = {nullptr, kPayload};
  return message;
}

constexpr uint64_t kRun = 0x0123456789ABCDEFu;
constexpr uint64_t kGeneration = 3;

TEST(WireDocTest, TheExampleIsWhatWeWrite) {
  const OutgoingFrame frame = ToFrames(ExampleMessage(), kRun, kGeneration)[0];
  EXPECT_EQ(frame.prefix + std::string(frame.payload.bytes.begin(), frame.payload.bytes.end()),
            ExampleBytes());
  EXPECT_EQ(frame.wire_bytes(), 74u);
}

TEST(WireDocTest, TheExampleIsReadAsItSays) {
  const std::string bytes = ExampleBytes();
  ASSERT_EQ(bytes.size(), 69u);
  const absl::StatusOr<ParsedFrame> frame = ParseFrame({BytesOf(bytes)});
  ASSERT_TRUE(frame.ok()) << frame.status();

  LinkOptions options;
  options.run = kRun;
  options.generation = kGeneration;
  options.cut = 1;
  options.receives = DIRECTION_ACTIVATION;
  options.max_payload_bytes = 6;
  const absl::StatusOr<PayloadChunk> chunk = FrameChecker(options).Check(*frame);
  ASSERT_TRUE(chunk.ok()) << chunk.status();

  const absl::StatusOr<std::optional<Message>> message = Assembler(options).Add(*chunk);
  ASSERT_TRUE(message.ok() && message->has_value()) << message.status();
  const Message wanted = ExampleMessage();
  EXPECT_TRUE((*message)->key == wanted.key);
  EXPECT_EQ((*message)->shape, wanted.shape);
  EXPECT_TRUE((*message)->codec == wanted.codec);
  EXPECT_EQ((*message)->sample_digest, wanted.sample_digest);
  EXPECT_EQ((*message)->payload.bytes, wanted.payload.bytes);
}

}  // namespace
}  // namespace thinwire
