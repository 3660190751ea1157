#include "compress/feedback/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compress/codecs/round_trip_testing.h"
#include "compress/feedback/feedback.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 300;

FeedbackOptions OptionsOf(StateStorage store) {
  FeedbackOptions options;
  options.spec.kind = FeedbackKind::kEf21;
  options.spec.key = StateKey::kSample;
  options.spec.store = store;
  options.spec.digest_every = 1;
  options.sample = {1, kElements};
  options.device = CpuDevice();
  options.kernels = CpuCodecKernels();
  return options;
}

struct Ends {
  std::unique_ptr<FeedbackSender> sender;
  std::unique_ptr<FeedbackReceiver> receiver;

  explicit Ends(StateStorage store)
      : sender(*FeedbackSender::New(OptionsOf(store))),
        receiver(*FeedbackReceiver::New(OptionsOf(store))) {}

  // Sends the message of a step. Returns what the receiver uses, or its error.
  absl::StatusOr<std::vector<float>> Cross(const Codec& codec, uint64_t step) {
    const Tensor x = TensorOf({2, kElements}, RandomValues(2 * kElements, step));
    const std::vector<uint64_t> rows = {step % 3, 7 + step % 2};
    std::vector<uint8_t> payload(codec.MaxPayloadBytes(x.shape(), x.dtype()));
    FeedbackSender::Outgoing out;
    out.x = &x;
    out.rows = rows;
    out.step = step;
    ASSIGN_OR_RETURN(const auto sent, sender->Encode(codec, out, absl::MakeSpan(payload)));
    FeedbackReceiver::Incoming in;
    in.payload = {payload.data(), sent.bytes};
    in.shape = x.shape();
    in.rows = rows;
    in.exact = sent.exact;
    in.first_visit = sent.first_visit;
    in.state_digest = sent.state_digest;
    in.step = step;
    ASSIGN_OR_RETURN(const Tensor y, receiver->Decode(codec, in));
    return FloatsOf(y);
  }
};

constexpr char kPrefix[] = "layer1/activation/sender";

std::string FileOf(StateStore* state, const Tensor& warm_start = Tensor(),
                   const StoredAxes& axes = {}) {
  std::string file;
  EXPECT_TRUE(WriteState(kPrefix, state, warm_start, axes, [&](std::string_view part) {
                file.append(part);
                return absl::OkStatus();
              }).ok());
  return file;
}

absl::Status Read(const std::string& file, StateStore* state) {
  Tensor warm_start;
  StoredAxes axes;
  return ReadState(kPrefix, file, state, &warm_start, &axes);
}

std::unique_ptr<Codec> TopK() {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = 0.1;
  return CodecOf(spec);
}

TEST(StateFileTest, WhatWasReadGoesOnBitForBit) {
  const auto codec = TopK();
  for (StateStorage store :
       {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8, StateStorage::kQ4}) {
    Ends ends(store), copy(store);
    for (uint64_t step = 1; step <= 10; ++step) ASSERT_TRUE(ends.Cross(*codec, step).ok());
    ASSERT_TRUE(Read(FileOf(ends.sender->state()), copy.sender->state()).ok());
    ASSERT_TRUE(Read(FileOf(ends.receiver->state()), copy.receiver->state()).ok());
    for (uint64_t step = 11; step <= 20; ++step) {
      EXPECT_EQ(*copy.Cross(*codec, step), *ends.Cross(*codec, step)) << Name(store);
    }
  }
}

TEST(StateFileTest, AChangedBitIsFoundByTheDigest) {
  const auto codec = TopK();
  Ends ends(StateStorage::kF32);
  for (uint64_t step = 1; step <= 6; ++step) ASSERT_TRUE(ends.Cross(*codec, step).ok());
  std::string file = FileOf(ends.receiver->state());
  file.back() = static_cast<char>(file.back() ^ 0x40);  // an exponent, of the last row
  ASSERT_TRUE(Read(file, ends.receiver->state()).ok());
  absl::Status status;
  for (uint64_t step = 7; step <= 12 && status.ok(); ++step) {
    status = ends.Cross(*codec, step).status();
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("state differs"));
}

TEST(StateFileTest, AFactorComesBack) {
  const Tensor factor = TensorOf({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor back;
  StoredAxes axes;
  ASSERT_TRUE(ReadState(kPrefix, FileOf(nullptr, factor), nullptr, &back, &axes).ok());
  EXPECT_TRUE(axes.bytes.empty());
  EXPECT_EQ(back.shape(), factor.shape());
  EXPECT_EQ(FloatsOf(back), FloatsOf(factor));
}

TEST(StateFileTest, AxesComeBack) {
  const std::string file = FileOf(nullptr, Tensor(), {std::string("\0axes", 5), 7});
  Tensor factor;
  StoredAxes back;
  ASSERT_TRUE(ReadState(kPrefix, file, nullptr, &factor, &back).ok());
  EXPECT_EQ(back.bytes, std::string("\0axes", 5));
  EXPECT_EQ(back.messages, 7u);
  EXPECT_TRUE(factor.empty());
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(Read(file.substr(0, length), nullptr).ok()) << length;
  }
}

TEST(StateFileTest, AFactorThatIsNotFiniteIsRefused) {
  for (const float value : {NAN, -INFINITY}) {
    const absl::Status status = Read(FileOf(nullptr, TensorOf({2, 1}, {1, value})), nullptr);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("layer1/activation/sender.warm_start has "));
  }
}

TEST(StateFileTest, ErrorsNameTheTensor) {
  const auto codec = TopK();
  Ends ends(StateStorage::kF32), other(StateStorage::kF16);
  ASSERT_TRUE(ends.Cross(*codec, 1).ok());
  const std::string file = FileOf(ends.sender->state());
  EXPECT_THAT(std::string(Read(file, other.sender->state()).message()),
              HasSubstr("layer1/activation/sender.rows is F32 [2, 300] of store \"fp32\""));
  EXPECT_THAT(std::string(Read(FileOf(nullptr), ends.sender->state()).message()),
              HasSubstr("no tensor layer1/activation/sender.keys"));
  EXPECT_THAT(std::string(Read(file, nullptr).message()), HasSubstr("has no place at this end"));
  EXPECT_FALSE(Read(file.substr(0, file.size() - 1), ends.sender->state()).ok());
}

}  // namespace
}  // namespace thinwire
