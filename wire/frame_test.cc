#include "wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "compress/spec_text.h"
#include "google/protobuf/unknown_field_set.h"
#include "wire/link_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string ToString(ByteSpan bytes) { return std::string(bytes.begin(), bytes.end()); }

std::string Serialized(const OutgoingFrame& frame) {
  return frame.prefix + ToString(frame.payload.bytes);
}

// Splits `bytes` into parts of at most `part_bytes`.
ByteSpans Split(const std::string& bytes, size_t part_bytes) {
  ByteSpans parts;
  for (size_t i = 0; i < bytes.size(); i += part_bytes) {
    parts.push_back(BytesOf(bytes).subspan(i, part_bytes));
  }
  return parts;
}

absl::StatusOr<ParsedFrame> Parse(const std::string& bytes) { return ParseFrame({BytesOf(bytes)}); }

std::string PayloadOf(const ParsedFrame& frame) {
  std::string bytes;
  for (ByteSpan part : frame.payload) bytes += ToString(part);
  return bytes;
}

FrameHeader SmallHeader() {
  FrameHeader header;
  header.set_run(77);
  header.set_step(300);
  header.add_shape(1000);
  return header;
}

// The three fields of a frame as stock protobuf writes them, to be put in any order.
struct Fields {
  explicit Fields(const std::string& payload_bytes) {
    Frame frame;
    *frame.mutable_header() = SmallHeader();
    header = frame.SerializeAsString();
    frame.Clear();
    frame.set_header_crc32c(Checksum());
    checksum = frame.SerializeAsString();
    frame.Clear();
    frame.set_payload(payload_bytes);
    payload = frame.SerializeAsString();
  }
  static uint32_t Checksum() {
    const std::string bytes = SmallHeader().SerializeAsString();
    return Crc32c(bytes.data(), bytes.size());
  }
  std::string header, checksum, payload;
};

TEST(ToFramesTest, BytesAreThoseOfStockProtobuf) {
  for (size_t payload_bytes : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{70000},
                               kMaxChunkBytes, kMaxChunkBytes + 1, 2 * kMaxChunkBytes + 5}) {
    for (const OutgoingFrame& frame :
         ToFrames(TestMessage(DIRECTION_GRADIENT, payload_bytes), 77, 5)) {
      const std::string bytes = Serialized(frame);
      Frame stock;
      ASSERT_TRUE(stock.ParseFromString(bytes));
      EXPECT_TRUE(stock.GetReflection()->GetUnknownFields(stock).empty());
      EXPECT_TRUE(stock.SerializeAsString() == bytes) << payload_bytes << " bytes";
      EXPECT_EQ(frame.wire_bytes(), stock.ByteSizeLong() + 5);
    }
  }
}

TEST(ToFramesTest, ChecksumsAreOfHeaderAndPayload) {
  const OutgoingFrame frame = ToFrames(TestMessage(DIRECTION_GRADIENT, 1000), 77, 5)[0];
  Frame stock;
  ASSERT_TRUE(stock.ParseFromString(Serialized(frame)));
  const std::string header = stock.header().SerializeAsString();
  EXPECT_EQ(stock.header_crc32c(), Crc32c(header.data(), header.size()));
  EXPECT_EQ(stock.header().payload_crc32c(), Crc32c(stock.payload().data(), 1000));
}

TEST(ToFramesTest, EveryChunkIsFullButTheLast) {
  std::vector<size_t> sizes;
  for (const OutgoingFrame& frame :
       ToFrames(TestMessage(DIRECTION_GRADIENT, 2 * kMaxChunkBytes + 5), 77, 5)) {
    sizes.push_back(frame.payload.bytes.size());
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(kMaxChunkBytes, kMaxChunkBytes, 5));
}

TEST(ToFramesTest, OnlyTheFirstChunkDescribesTheTensor) {
  const std::vector<OutgoingFrame> frames =
      ToFrames(TestMessage(DIRECTION_GRADIENT, kMaxChunkBytes + 5), 77, 5);
  const absl::StatusOr<ParsedFrame> second = Parse(Serialized(frames[1]));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->header.dtype(), 0u);
  EXPECT_EQ(second->header.shape_size(), 0);
  EXPECT_FALSE(second->header.has_codec());
  EXPECT_EQ(second->header.payload_bytes(), 0u);
}

TEST(ToFramesTest, PayloadIsReferencedNotCopied) {
  const Message message = TestMessage(DIRECTION_GRADIENT, kMaxChunkBytes + 5);
  const std::vector<OutgoingFrame> frames = ToFrames(message, 77, 5);
  EXPECT_EQ(frames[0].payload.bytes.data(), message.payload.bytes.data());
  EXPECT_EQ(frames[1].payload.bytes.data(), message.payload.bytes.data() + kMaxChunkBytes);
  EXPECT_EQ(frames[1].payload.owner, message.payload.owner);
}

uint64_t SumOfFrames(const Message& message, uint64_t run, uint64_t generation) {
  uint64_t bytes = 0;
  for (const OutgoingFrame& frame : ToFrames(message, run, generation)) bytes += frame.wire_bytes();
  return bytes;
}

TEST(WireBytesTest, AreThoseOfTheFramesAtEveryPayloadSize) {
  for (size_t payload_bytes :
       {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{16383}, size_t{16384}, size_t{70000},
        kMaxChunkBytes - 1, kMaxChunkBytes, kMaxChunkBytes + 1, 3 * kMaxChunkBytes}) {
    const Message message = TestMessage(DIRECTION_GRADIENT, payload_bytes);
    EXPECT_EQ(WireBytes(message, payload_bytes, 77, 5), SumOfFrames(message, 77, 5))
        << payload_bytes << " bytes";
  }
}

TEST(WireBytesTest, OfALargePayloadAreAThousandthMore) {
  for (const size_t payload_bytes : {size_t{256} << 10, kMaxChunkBytes, 3 * kMaxChunkBytes + 1}) {
    Message message = TestMessage(DIRECTION_GRADIENT, payload_bytes);
    message.codec = *ParseCodec("topk(ratio=0.015625, scope=group, group=4096, values=means)");
    EXPECT_LE(WireBytes(message, payload_bytes, uint64_t{1} << 60, 5), 1.001 * payload_bytes);
  }
}

TEST(WireBytesTest, AreThoseOfTheFramesWhateverTheHeaderSays) {
  std::vector<CodecSpec> codecs(static_cast<size_t>(CodecKind::kPlugin) + 1);
  for (size_t kind = 0; kind < codecs.size(); ++kind) {
    codecs[kind].kind = static_cast<CodecKind>(kind);
  }
  for (uint32_t microbatch = 0; microbatch < 6;
       ++microbatch) {  // with and without first_visit, state_digest
    for (uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{300}, uint64_t{1} << 40}) {
      for (const CodecSpec& codec : codecs) {
        Message message = TestMessage(DIRECTION_ACTIVATION, 1000, microbatch);
        message.codec = codec;
        message.key.step = number;
        message.key.epoch = static_cast<uint32_t>(number);
        message.sample_digest = number;
        message.shape = Shape{static_cast<int64_t>(number % 1000), 7};
        if (microbatch > 2) message.document_starts = {3, 300, 70000};
        EXPECT_EQ(WireBytes(message, 1000, /*run=*/number, /*generation=*/number),
                  SumOfFrames(message, number, number))
            << codec.ToString() << ", number " << number << ", microbatch " << microbatch;
      }
    }
  }
}

TEST(ParseFrameTest, FieldsMayComeInAnyOrder) {
  const Fields fields("payload");
  std::vector<std::string> order = {fields.header, fields.checksum, fields.payload};
  std::sort(order.begin(), order.end());
  do {
    const std::string bytes = order[0] + order[1] + order[2];
    const absl::StatusOr<ParsedFrame> frame = Parse(bytes);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->header.SerializeAsString(), SmallHeader().SerializeAsString());
    EXPECT_EQ(PayloadOf(*frame), "payload");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ParseFrameTest, BytesMayBeScatteredAnyhow) {
  const std::string bytes = Serialized(ToFrames(TestMessage(DIRECTION_GRADIENT, 1000), 77, 5)[0]);
  for (size_t part_bytes = 1; part_bytes <= bytes.size(); part_bytes += 7) {
    const absl::StatusOr<ParsedFrame> frame = ParseFrame(Split(bytes, part_bytes));
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->payload_bytes, 1000u);
    EXPECT_EQ(PayloadOf(*frame), bytes.substr(bytes.size() - 1000));
  }
}

TEST(ParseFrameTest, PayloadIsAViewOfTheInput) {
  const std::string bytes = Serialized(ToFrames(TestMessage(DIRECTION_GRADIENT, 1000), 77, 5)[0]);
  const absl::StatusOr<ParsedFrame> frame = Parse(bytes);
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->payload.size(), 1u);
  EXPECT_EQ(frame->payload[0].end(), BytesOf(bytes).end());
}

TEST(ParseFrameTest, UnknownFieldsOfEveryWireTypeAreSkipped) {
  const Fields fields("payload");
  const std::string varint = "\x48\x80\x01";
  const std::string fixed64 =
      "\x49"
      "12345678";
  const std::string length =
      "\x4A\x03"
      "abc";
  const std::string fixed32 =
      "\x4D"
      "1234";
  const std::string bytes =
      varint + fields.header + fixed64 + fields.checksum + length + fields.payload + fixed32;
  const absl::StatusOr<ParsedFrame> frame = Parse(bytes);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(PayloadOf(*frame), "payload");
}

TEST(ParseFrameTest, AFrameThatEndsWithinAFieldIsRefused) {
  const Fields fields("payload");
  const std::string bytes = fields.header + fields.checksum + fields.payload;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const bool ends_between_fields =
        size == fields.header.size() + fields.checksum.size();  // an empty payload
    EXPECT_EQ(Parse(bytes.substr(0, size)).ok(), ends_between_fields) << size;
  }
}

TEST(ParseFrameTest, EveryBitOfTheHeaderIsGuarded) {
  const Fields fields("payload");
  const std::string bytes = fields.header + fields.checksum + fields.payload;
  for (size_t i = 2; i < fields.header.size() + 5; ++i) {  // header's bytes and its checksum
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(Parse(damaged).ok()) << "bit " << bit << " of byte " << i;
    }
  }
}

TEST(ParseFrameTest, ADamagedHeaderIsDataLossAndBothChecksumsAreNamed) {
  Frame frame;
  *frame.mutable_header() = SmallHeader();
  frame.set_header_crc32c(0x12345678);
  const absl::Status status = Parse(frame.SerializeAsString()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("header_crc32c is 0x12345678, the header's bytes give 0x"));
}

TEST(ParseFrameTest, AFieldThatStandsTwiceIsRefused) {
  const Fields fields("payload");
  const std::string bytes = fields.header + fields.checksum + fields.payload;
  for (const std::string& again : {fields.header, fields.checksum, fields.payload}) {
    const absl::Status status = Parse(bytes + again).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("stands twice"));
  }
}

TEST(ParseFrameTest, AKnownFieldOfAnotherWireTypeIsRefused) {
  const absl::Status status = Parse(std::string("\x10\x01", 2)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("field 2 has wire type 0, want 5"));
}

TEST(ParseFrameTest, GroupsAndFieldZeroAreRefused) {
  EXPECT_FALSE(Parse("\x4B\x4C").ok());
  EXPECT_FALSE(Parse(std::string("\x00\x01", 2)).ok());
}

TEST(ParseFrameTest, AVarintOfMoreThan64BitsIsRefused) {
  const absl::Status status = Parse("\x48" + std::string(9, '\xFF') + "\x02").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("longer than 64 bits"));
  EXPECT_FALSE(Parse("\x48" + std::string(11, '\xFF')).ok());
}

TEST(ParseFrameTest, AFrameWithoutAHeaderIsRefused) {
  EXPECT_THAT(std::string(Parse(Fields("payload").payload).status().message()),
              HasSubstr("no header"));
  EXPECT_FALSE(ParseFrame({}).ok());
}

TEST(ParseFrameTest, APayloadOfMoreThanAChunkIsRefused) {
  const Fields fields(std::string(kMaxChunkBytes + 1, 'x'));
  const absl::Status status = Parse(fields.header + fields.checksum + fields.payload).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("payload of 4194305 bytes, want at most 4194304"));
}

TEST(ParseFrameTest, UnknownFieldsCannotMakeAFrameHeavy) {
  const Fields fields("payload");
  Frame padding;
  padding.GetReflection()->MutableUnknownFields(&padding)->AddLengthDelimited(
      9, std::string(kMaxFrameOverhead, 'x'));
  const absl::Status status =
      Parse(fields.header + fields.checksum + padding.SerializeAsString()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("beside the payload, want at most 65536"));
}

}  // namespace
}  // namespace thinwire
