// Tests of a direction whose ends compute on different backends: both must remember the same, to
// the last bit.
#include "compress/feedback/feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "compress/codecs/new_codec.h"
#include "compress/cuda/twin_testing.h"
#include "compress/feedback/pair_testing.h"
#include "tensor/copy_testing.h"

namespace thinwire {
namespace {

const Shape kSample = {1, 5, 3, 12};
constexpr int64_t kBatch = 3;

FeedbackOptions OnCpu(const FeedbackSpec& spec, DType dtype) {
  return FeedbackOptionsOf(spec, kSample, dtype);
}
FeedbackOptions OnTested(const FeedbackSpec& spec, DType dtype) {
  FeedbackOptions options = OnCpu(spec, dtype);
  options.device = GpuTwin().device;
  options.kernels = GpuTwin().kernels;
  return options;
}

// Returns slowly changing messages, as in training.
Tensor MessageOf(uint64_t step, DType dtype) {
  const Shape shape = kSample.WithBatch(kBatch);
  const std::vector<float> fixed = RandomValues(shape.elements(), 1);
  std::vector<float> values = RandomValues(shape.elements(), 100 + step, /*relu=*/true);
  for (size_t i = 0; i < values.size(); ++i) values[i] = fixed[i] + 0.25f * values[i];
  return dtype == DType::kF32 ? TensorOf(shape, values) : BFloatTensorOf(shape, values);
}

// Returns rows that come again in another order, with a new one now and then.
Rows RowsOf(uint64_t step) { return {step % 4, 10 + (step + 1) % 4, 20 + step / 9}; }

struct Sent {
  std::vector<uint8_t> received;
  std::vector<uint8_t> payload;
};

// Runs 30 steps, some of them exact. Returns what was received and sent in each.
std::vector<Sent> Run(const FeedbackOptions& from, const FeedbackOptions& to,
                      const CodecSpec& codec_spec, FeedbackPair* pair) {
  pair->receiver = std::move(*FeedbackReceiver::New(to));
  const auto sender_codec = std::move(*NewCodec(codec_spec, from.kernels));
  const auto receiver_codec = std::move(*NewCodec(codec_spec, to.kernels));
  std::vector<Sent> all;
  for (uint64_t step = 0; step < 30; ++step) {
    const Tensor x = On(from.device, MessageOf(step, from.compute));
    const Rows rows = RowsOf(step);
    FeedbackSender::Outgoing outgoing;
    outgoing.x = &x;
    outgoing.rows = rows;
    outgoing.compress = step % 11 != 6;
    outgoing.step = step;
    outgoing.want_received = true;
    outgoing.context.random_key = step;
    std::vector<uint8_t> payload(
        FeedbackMaxPayloadBytes(from.spec, *sender_codec, x.shape(), from.compute));
    const auto encoded = pair->sender->Encode(*sender_codec, outgoing, absl::MakeSpan(payload));
    EXPECT_TRUE(encoded.ok()) << encoded.status();
    if (!encoded.ok()) return all;
    payload.resize(encoded->bytes);
    FeedbackReceiver::Incoming incoming;
    incoming.payload = payload;
    incoming.shape = x.shape();
    incoming.rows = rows;
    incoming.exact = encoded->exact;
    incoming.first_visit = encoded->first_visit;
    incoming.state_digest = encoded->state_digest;
    incoming.step = step;
    const auto used = pair->receiver->Decode(*receiver_codec, incoming);
    EXPECT_TRUE(used.ok()) << used.status();
    if (!used.ok()) return all;
    all.push_back({BytesOf(On(CpuDevice(), *used)), payload});
    EXPECT_TRUE(all.back().received == BytesOf(On(CpuDevice(), encoded->received)))
        << "step " << step;
  }
  return all;
}

void ExpectEndsAgree(const FeedbackSpec& spec, const CodecSpec& codec, DType dtype) {
  SCOPED_TRACE(spec.ToString() + " " + codec.ToString() + " " + Name(dtype));
  const FeedbackOptions cpu = OnCpu(spec, dtype), tested = OnTested(spec, dtype);
  FeedbackPair reference(cpu), outwards(cpu), back(tested);
  const std::vector<Sent> expected = Run(cpu, cpu, codec, &reference);
  const std::vector<Sent> there = Run(cpu, tested, codec, &outwards);
  const std::vector<Sent> here = Run(tested, cpu, codec, &back);
  ASSERT_EQ(there.size(), expected.size());
  ASSERT_EQ(here.size(), expected.size());
  for (size_t step = 0; step < expected.size(); ++step) {
    EXPECT_TRUE(there[step].received == expected[step].received) << "step " << step;
    // A GPU's low_rank has factors of its own. Both ends agree on them, whoever made them.
    if (codec.kind == CodecKind::kLowRank) continue;
    EXPECT_TRUE(here[step].payload == expected[step].payload) << "step " << step;
  }
  for (const FeedbackPair* pair : {&outwards, &back}) {
    StateStore* const received = pair->receiver->state();
    if (received == nullptr) continue;
    EXPECT_EQ(pair->sender->state()->keys(), received->keys());
    EXPECT_TRUE(StoredRows(pair->sender->state()) == StoredRows(received));
  }
  EXPECT_TRUE(StoredRows(outwards.sender->state()) == StoredRows(reference.sender->state()));
  if (codec.kind == CodecKind::kLowRank) return;
  EXPECT_TRUE(StoredRows(back.sender->state()) == StoredRows(reference.sender->state()));
}

// Returns one codec of every kind if state rows are stored as they are, a few if they are encoded.
std::vector<CodecSpec> CodecsWith(StateStorage store) {
  if (store != StateStorage::kF32) return {UniformOf(4), TopKOf(0.1)};
  CodecSpec low_rank;
  low_rank.kind = CodecKind::kLowRank;
  low_rank.rank = 2;
  return {UniformOf(4), UniformOf(2, Rounding::kStochastic), TopKOf(0.1), low_rank};
}

FeedbackSpec Tracked(StateInit init, StateStorage store) {
  FeedbackSpec spec = SpecOf(FeedbackKind::kEf21, init);
  spec.key = init == StateInit::kExact ? StateKey::kSample : StateKey::kSlot;
  spec.store = store;
  spec.digest_every = 1;
  return spec;
}

class UnlikeEndsTest : public testing::TestWithParam<DType> {};

TEST_P(UnlikeEndsTest, AgreeUnderEf21) {
  for (const StateStorage store : {StateStorage::kF32, StateStorage::kQ8}) {
    for (const CodecSpec& codec : CodecsWith(store)) {
      ExpectEndsAgree(Tracked(StateInit::kZero, store), codec, GetParam());
    }
  }
}

TEST_P(UnlikeEndsTest, AgreeUnderAqSgd) {
  for (const StateStorage store : {StateStorage::kF32, StateStorage::kF16, StateStorage::kQ8}) {
    for (const CodecSpec& codec : CodecsWith(store)) {
      ExpectEndsAgree(Tracked(StateInit::kExact, store), codec, GetParam());
    }
  }
}

TEST_P(UnlikeEndsTest, AgreeUnderEf) {
  for (const StateStorage store : {StateStorage::kF32, StateStorage::kQ8}) {
    for (const CodecSpec& codec : CodecsWith(store)) {
      FeedbackSpec spec = SpecOf(FeedbackKind::kEf);
      spec.store = store;
      spec.decay = 0.9;
      ExpectEndsAgree(spec, codec, GetParam());
    }
  }
}

TEST_P(UnlikeEndsTest, AgreeUnderSplitErrors) {
  ExpectEndsAgree(SpecOf(FeedbackKind::kSplit), TopKOf(0.1), GetParam());
}

TEST_P(UnlikeEndsTest, AgreeWithRowsInAFile) {
  FeedbackSpec spec = Tracked(StateInit::kExact, StateStorage::kF32);
  spec.dir = testing::TempDir();
  ExpectEndsAgree(spec, UniformOf(4), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, UnlikeEndsTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

std::vector<float> FactorOf(const FeedbackSender& sender) {
  const std::string data = DataOfPart(sender.carry(), "warm_start");
  std::vector<float> factor(data.size() / sizeof(float));
  std::memcpy(factor.data(), data.data(), data.size());
  return factor;
}

// Tests that each sample's factor is that of the last message that had the sample, on both
// backends.
TEST(CudaFeedbackTest, LowRankPerSampleStartsFromTheCpusFactors) {
  CodecSpec spec;
  spec.kind = CodecKind::kLowRank;
  spec.rank = 2;
  spec.per_sample = true;
  const FeedbackOptions cpu = OnCpu(SpecOf(FeedbackKind::kNone), DType::kF32);
  const FeedbackOptions tested = OnTested(SpecOf(FeedbackKind::kNone), DType::kF32);
  FeedbackPair reference(cpu), pair(tested);
  const auto cpu_codec = CodecOf(spec), codec = std::move(*NewCodec(spec, tested.kernels));
  for (int64_t samples : {4, 3, 4, 5}) {
    const Shape shape = kSample.WithBatch(samples);
    const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 1));
    ASSERT_TRUE(reference.Send(*cpu_codec, x, {}).ok());
    ASSERT_TRUE(pair.Send(*codec, On(tested.device, x), {}).ok());
    const std::vector<float> factors = FactorOf(*pair.sender);
    const std::vector<float> expected = FactorOf(*reference.sender);
    ASSERT_EQ(factors.size(), static_cast<size_t>(std::max<int64_t>(samples, 4) * 12 * 2));
    ASSERT_EQ(factors.size(), expected.size());
    for (size_t i = 0; i < factors.size(); ++i) ASSERT_NEAR(factors[i], expected[i], 1e-4) << i;
  }
}

// Tests fp32 numbers above the largest bf16, 3.39e38: they are finite, but infinite at a bf16
// receiver.
TEST(CudaFeedbackTest, WhatOverflowsDoesNotStayInState) {
  CodecSpec bf16;
  bf16.kind = CodecKind::kBf16;
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackOptions options = OnTested(SpecOf(kind), DType::kF32);
    options.sample = {1, 3};
    const auto codec = std::move(*NewCodec(bf16, options.kernels));
    FeedbackPair pair(options);
    const auto send = [&](float value) {
      return pair.Send(*codec, On(options.device, TensorOf({1, 3}, {1, value, 2})), {0});
    };
    ASSERT_TRUE(send(FLT_MAX).ok());
    EXPECT_EQ(BytesOf(On(CpuDevice(), pair.encoded.decoded))[7], 0x7F);  // of infinity
    const auto next = send(5);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(BytesOf(On(CpuDevice(), *next)), BytesOf(TensorOf({1, 5, 2})));
  }
}

}  // namespace
}  // namespace thinwire
