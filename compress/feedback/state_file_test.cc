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

std::string FileOf(StateStore* state, const std::vector<StoredTensor>& carried = {}) {
  std::string file;
  EXPECT_TRUE(WriteState(kPrefix, state, carried, [&](std::string_view part) {
                file.append(part);
                return absl::OkStatus();
              }).ok());
  return file;
}

absl::Status Read(const std::string& file, StateStore* state) {
  std::vector<StoredTensor> carried;
  return ReadState(kPrefix, file, state, &carried);
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

TEST(StateFileTest, WhatACodecLeftComesBack) {
  const std::string axes("\0axes", 5), count(8, '\1');
  const std::string file =
      FileOf(nullptr, {{"axes", "U8", {5}, axes}, {"axes_messages", "U64", {1}, count}});
  std::vector<StoredTensor> back;
  ASSERT_TRUE(ReadState(kPrefix, file, nullptr, &back).ok());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "axes");
  EXPECT_EQ(back[0].dtype, "U8");
  EXPECT_EQ(back[0].shape, std::vector<int64_t>{5});
  EXPECT_EQ(back[0].data, axes);
  EXPECT_EQ(back[1].name, "axes_messages");
  EXPECT_EQ(back[1].data, count);
  EXPECT_THAT(file, HasSubstr("\"layer1/activation/sender.axes_messages\""));
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(Read(file.substr(0, length), nullptr).ok()) << length;
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
