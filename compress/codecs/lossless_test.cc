#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <thread>
#include <tuple>

#include "compress/codecs/round_trip_testing.h"
#include "compress/codecs/stack.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

CodecSpec With(Lossless lossless, CodecSpec spec) {
  spec.lossless = lossless;
  return spec;
}
CodecSpec Zstd(const CodecSpec& spec) { return With(Lossless::kZstd, spec); }
CodecSpec Entropy(const CodecSpec& spec) { return With(Lossless::kEntropy, spec); }

class EachLosslessTest : public ::testing::TestWithParam<Lossless> {};
INSTANTIATE_TEST_SUITE_P(All, EachLosslessTest,
                         ::testing::Values(Lossless::kZstd, Lossless::kEntropy),
                         [](const auto& info) { return std::string(Name(info.param)); });

std::vector<CodecSpec> InnerSpecs() {
  std::vector<CodecSpec> specs(6);
  specs[1].kind = CodecKind::kFp16;
  specs[2].kind = CodecKind::kUniform;
  specs[2].bits = 4;
  specs[3].kind = CodecKind::kUniform;
  specs[3].range = Range::kFixedPoint;
  specs[3].rounding = Rounding::kStochastic;
  specs[4].kind = CodecKind::kTopK;
  specs[4].ratio = 0.1;
  specs[5].kind = CodecKind::kBlockwise8;
  specs[5].block = 64;
  return specs;
}

std::vector<uint8_t> FrameOf(const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t> frame(ZSTD_compressBound(bytes.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), 3));
  return frame;
}
std::vector<uint8_t> Payload(uint8_t form, const std::vector<uint8_t>& rest) {
  std::vector<uint8_t> payload(1 + rest.size());
  payload[0] = form;
  std::copy(rest.begin(), rest.end(), payload.begin() + 1);
  return payload;
}

TEST_P(EachLosslessTest, DecodesToWhatTheInnerCodecDecodes) {
  for (const CodecSpec& inner : InnerSpecs()) {
    for (const Shape& shape : {Shape{0, 3}, Shape{1}, Shape{2, 3, 5}, Shape{4, 3000}}) {
      for (bool relu : {false, true}) {
        const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 1, relu));
        EXPECT_EQ(*RoundTrip(With(GetParam(), inner), x, 7), *RoundTrip(inner, x, 7))
            << inner.ToString() << shape.ToString();
      }
    }
  }
}

TEST(LosslessTest, ShortensWhatRepeatsAndStoresTheRest) {
  CodecSpec none;
  const Tensor zeros = TensorOf(std::vector<float>(10000, 0.0f));
  EXPECT_LT(EncodeToBytes(Zstd(none), zeros)->size(), 100u);
  std::vector<float> noise(1000);
  RandomStream random(3);
  for (float& value : noise) {
    const uint32_t bits = (random.Next() & 0xBFFFFFFF) | 0x20000000;
    std::memcpy(&value, &bits, 4);
  }
  const auto payload = *EncodeToBytes(Zstd(none), TensorOf(noise));
  EXPECT_EQ(payload, Payload(0, *EncodeToBytes(none, TensorOf(noise))));
}

TEST(LosslessTest, ShortenedPayloadsAreOneFrameOfTheInnerPayload) {
  const Tensor x = TensorOf(RandomValues(10000, 1, /*relu=*/true));
  for (const CodecSpec& inner : InnerSpecs()) {
    const std::vector<uint8_t> payload = *EncodeToBytes(Zstd(inner), x);
    const std::vector<uint8_t> wanted = *EncodeToBytes(inner, x);
    if (payload[0] == 0) continue;
    EXPECT_LT(payload.size(), 1 + wanted.size());
    std::vector<uint8_t> bytes(wanted.size());
    EXPECT_EQ(ZSTD_decompress(bytes.data(), bytes.size(), &payload[1], payload.size() - 1),
              wanted.size());
    EXPECT_EQ(bytes, wanted) << inner.ToString();
  }
}

TEST_P(EachLosslessTest, NoPayloadIsLongerThanTheLimitSays) {
  for (const CodecSpec& inner : InnerSpecs()) {
    EXPECT_EQ(CodecOf(With(GetParam(), inner))->MaxPayloadBytes({4, 9}, DType::kF32),
              1 + CodecOf(inner)->MaxPayloadBytes({4, 9}, DType::kF32));
  }
}

// Tests that what a thread writes does not depend on its tables, which hold earlier messages.
TEST_P(EachLosslessTest, EqualMessagesGiveEqualPayloadsOnAnyThreadAfterAnyOther) {
  std::vector<std::vector<uint8_t>> fresh;
  for (const CodecSpec& inner : InnerSpecs()) {
    for (size_t n : {200000, 40, 5000}) {
      std::thread([&] {
        fresh.push_back(
            *EncodeToBytes(With(GetParam(), inner), TensorOf(RandomValues(n, n, true))));
      }).join();
    }
  }
  for (int again = 0; again < 3; ++again) {
    size_t i = 0;
    for (const CodecSpec& inner : InnerSpecs()) {
      for (size_t n : {200000, 40, 5000}) {
        EXPECT_EQ(*EncodeToBytes(With(GetParam(), inner), TensorOf(RandomValues(n, n, true))),
                  fresh[i++])
            << inner.ToString() << n;
      }
    }
  }
}

TEST_P(EachLosslessTest, ThreadsDoNotDisturbEachOther) {
  const CodecSpec spec = With(GetParam(), InnerSpecs()[2]);
  const auto codec = CodecOf(spec);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = TensorOf(RandomValues(3000 + t, t, true));
      const std::vector<float> wanted = *RoundTrip(spec, x);
      for (int i = 0; i < 50; ++i) EXPECT_EQ(*RoundTrip(spec, x), wanted);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(EachLosslessTest, EveryCutOfAShortenedPayloadIsAnError) {
  const std::vector<uint8_t> payload =
      *EncodeToBytes(With(GetParam(), CodecSpec()), TensorOf(RandomValues(500, 1, true)));
  ASSERT_EQ(payload[0], static_cast<uint8_t>(GetParam()));
  for (size_t length = 0; length < payload.size(); ++length) {
    const std::vector<uint8_t> cut(payload.begin(), payload.begin() + length);
    EXPECT_EQ(DecodeFromBytes(With(GetParam(), CodecSpec()), cut, {500}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << length;
  }
}

TEST(LosslessTest, RefusesFramesOfAnotherLength) {
  const CodecSpec spec = Zstd(CodecSpec());
  for (size_t n : {0, 399, 401, 100000000}) {
    const auto payload = Payload(1, FrameOf(std::vector<uint8_t>(n)));
    EXPECT_EQ(DecodeFromBytes(spec, payload, {100}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << n;
  }
  EXPECT_TRUE(DecodeFromBytes(spec, Payload(1, FrameOf(std::vector<uint8_t>(400))), {100}).ok());
}

// Tests a frame with a window of 2^41 bytes and a content of 2^60 bytes: nothing is allocated by
// either.
TEST(LosslessTest, RefusesFramesThatLieAboutTheirSize) {
  const std::vector<uint8_t> window = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xF8, 0x01, 0x00, 0x00};
  const std::vector<uint8_t> content = {0x28, 0xB5, 0x2F, 0xFD, 0xC0, 0x58, 0, 0, 0,
                                        0,    0,    0,    0,    0x10, 0x01, 0, 0};
  for (const auto& frame : {window, content}) {
    EXPECT_EQ(DecodeFromBytes(Zstd(CodecSpec()), Payload(1, frame), {100}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(LosslessTest, RefusesAllButOneFrame) {
  const std::vector<uint8_t> half = FrameOf(std::vector<uint8_t>(200));
  std::vector<uint8_t> two = half;
  two.insert(two.end(), half.begin(), half.end());
  const std::vector<uint8_t> skippable = {0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0};
  std::vector<uint8_t> skipped = skippable;
  const std::vector<uint8_t> whole = FrameOf(std::vector<uint8_t>(400));
  skipped.insert(skipped.end(), whole.begin(), whole.end());
  std::vector<uint8_t> old_format = whole;
  old_format[0] = 0x27;
  for (const auto& bytes : {two, skippable, skipped, old_format}) {
    EXPECT_EQ(DecodeFromBytes(Zstd(CodecSpec()), Payload(1, bytes), {100}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(LosslessTest, RefusesAFormOfAnother) {
  for (const auto& [spec, form, wanted] :
       {std::tuple(Zstd(CodecSpec()), 2, "form 2, want 0 or 1"),
        std::tuple(Entropy(CodecSpec()), 1, "form 1, want 0 or 2"),
        std::tuple(Entropy(CodecSpec()), 3, "form 3, want 0 or 2")}) {
    const auto payload = Payload(static_cast<uint8_t>(form), {0, 0, 0, 0});
    const auto y = DecodeFromBytes(spec, payload, {1});
    EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(y.status().message()), HasSubstr(wanted));
  }
}

TEST(LosslessTest, EntropyShortensCodesMoreThanZstd) {
  for (const uint32_t bits : {2, 4, 8}) {
    CodecSpec uniform;
    uniform.kind = CodecKind::kUniform;
    uniform.bits = bits;
    std::vector<float> values = RandomValues(100000, 1, /*relu=*/true);
    for (float& value : values)
      value = value * value * value;  // most are small, as activations are
    const Tensor x = TensorOf(values);
    const size_t entropy = EncodeToBytes(Entropy(uniform), x)->size();
    EXPECT_LT(entropy, 0.98 * static_cast<double>(EncodeToBytes(Zstd(uniform), x)->size())) << bits;
  }
}

TEST(LosslessTest, HandsOnWhatTheInnerCodecRefuses) {
  const auto payload = EncodeToBytes(Zstd(InnerSpecs()[2]), TensorOf({NAN, 1}));
  EXPECT_EQ(payload.status().code(), absl::StatusCode::kOutOfRange);
  const auto frame = Payload(1, FrameOf(std::vector<uint8_t>(9, 0xFF)));
  EXPECT_FALSE(DecodeFromBytes(Zstd(InnerSpecs()[2]), frame, {2}).ok());
}

TEST_P(EachLosslessTest, LeavesWhatTheInnerCodecLeaves) {
  CodecSpec inner;
  inner.kind = CodecKind::kLowRank;
  inner.rank = 2;
  const Tensor x = TensorOf({40, 12}, std::vector<float>(480, 0.5f));
  const CodecSpec framed = With(GetParam(), inner);
  const auto left_by = [&](const CodecSpec& spec) {
    std::shared_ptr<const Carry> next;
    MessageContext context;
    context.next_carry = &next;
    std::vector<uint8_t> payload(CodecOf(spec)->MaxPayloadBytes(x.shape(), x.dtype()));
    EXPECT_TRUE(CodecOf(spec)->Encode(x, context, absl::MakeSpan(payload)).ok());
    return next;
  };
  const std::shared_ptr<const Carry> left = left_by(framed);
  EXPECT_EQ(DataOfPart(left, "warm_start"), DataOfPart(left_by(inner), "warm_start"));
  EXPECT_EQ(DataOfPart(left, "warm_start").size(), 4u * 12 * 2);
  const auto read = CodecOf(framed)->ReadCarry(left->Parts(), {1, 12}, CpuDevice());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(DataOfPart(*read, "warm_start"), DataOfPart(left, "warm_start"));
}

}  // namespace
}  // namespace thinwire
