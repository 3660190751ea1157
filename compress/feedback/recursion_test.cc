// Tests of the recursions against plain loops over the papers' formulas (EF: Karimireddy et al.,
// arXiv 1901.09847; EF21: Richtarik et al., arXiv 2106.05203), and of their known properties.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "compress/checks/distortion.h"
#include "compress/feedback/pair_testing.h"

namespace thinwire {
namespace {

using Values = std::vector<float>;
using Compressor = std::function<Values(const Values&)>;

constexpr int kBatch = 3, kElements = 40;
const Shape kShape = {kBatch, kElements};

// Computes D(C(x)) for the K largest magnitudes of all of x, ties to the lower index.
Values TopKLoop(const Values& x, size_t k) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
  Values y(x.size());
  for (size_t i = 0; i < k; ++i) y[order[i]] = x[order[i]];
  return y;
}

// Computes D(C(x)) for min-max quantisation of all of x to nearest even.
Values UniformLoop(const Values& x, int bits) {
  const float min = *std::min_element(x.begin(), x.end());
  const float range = *std::max_element(x.begin(), x.end()) - min;
  const float steps = static_cast<float>((1 << bits) - 1);
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float code = range > 0 ? std::nearbyint((x[i] - min) * (steps / range)) : 0;
    y[i] = code * (1 / steps) * range + min;
  }
  return y;
}

struct Case {
  const char* name;
  CodecSpec codec;
  Compressor compress;
};
std::vector<Case> Cases() {
  return {{"topk", TopKOf(0.1), [](const Values& x) { return TopKLoop(x, 12); }},
          {"uniform", UniformOf(4), [](const Values& x) { return UniformLoop(x, 4); }}};
}

Values Plus(float a, const Values& x, float b, const Values& y) {
  Values sum(x.size());
  for (size_t i = 0; i < x.size(); ++i) sum[i] = a * x[i] + b * y[i];
  return sum;
}

Values StepValues(int step) { return RandomValues(kBatch * kElements, 1000 + step); }

TEST(EfTest, FollowsTheFormulaBitByBit) {
  for (const Case& c : Cases()) {
    for (const float decay : {1.0f, 0.75f}) {
      FeedbackSpec spec = SpecOf(FeedbackKind::kEf);
      spec.decay = decay;
      FeedbackPair pair(FeedbackOptionsOf(spec, {1, kElements}));
      const auto codec = CodecOf(c.codec);
      Values e(kBatch * kElements);
      for (int step = 0; step < 30; ++step) {
        const Values x = StepValues(step);
        const Values m = Plus(1, x, 1, e);
        const Values sent = c.compress(m);
        e = Plus(decay, m, -decay, sent);
        const Tensor received = *pair.Send(*codec, TensorOf(kShape, x), {0, 1, 2});
        ASSERT_EQ(FloatsOf(received), sent) << c.name << " step " << step;
        ASSERT_EQ(FloatsOf(pair.encoded.message), m);
      }
    }
  }
}

TEST(Ef21Test, FollowsTheFormulaBitByBit) {
  for (const Case& c : Cases()) {
    FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21), {1, kElements}));
    const auto codec = CodecOf(c.codec);
    Values a(kBatch * kElements);
    for (int step = 0; step < 30; ++step) {
      const Values x = StepValues(step);
      a = Plus(1, a, 1, c.compress(Plus(1, x, -1, a)));
      const Tensor received = *pair.Send(*codec, TensorOf(kShape, x), {0, 1, 2});
      ASSERT_EQ(FloatsOf(received), a) << c.name << " step " << step;
    }
  }
}

TEST(EfMixedBTest, FollowsTheFormulaBitByBit) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kSplit), {1, kElements}));
  const auto codec = CodecOf(TopKOf(0.1));
  Values e(kBatch * kElements);
  for (int step = 0; step < 30; ++step) {
    const Values x = StepValues(step);
    const Values sent = Plus(1, TopKLoop(x, 6), 1, step > 0 ? TopKLoop(e, 6) : e);
    e = Plus(1, Plus(1, x, 1, e), -1, sent);
    const Tensor received = *pair.Send(*codec, TensorOf(kShape, x), {0, 1, 2});
    ASSERT_EQ(FloatsOf(received), sent) << "step " << step;
  }
}

// Returns the number of entries in the two parts of the pair's last payload, both of topk.
uint32_t EntriesOf(const FeedbackPair& pair) {
  uint64_t x_bytes;
  uint32_t of_x, of_e;
  std::memcpy(&x_bytes, pair.payload.data(), 8);
  std::memcpy(&of_x, pair.payload.data() + 8 + 4, 4);  // behind coding, bits and exponent
  std::memcpy(&of_e, pair.payload.data() + 8 + x_bytes + 4, 4);
  return of_x + of_e;
}

TEST(EfMixedBTest, NeverSendsMoreThanTheBudget) {
  for (const Scope scope : {Scope::kTensor, Scope::kSample}) {
    for (int k = 2; k <= 9; ++k) {
      const int elements = scope == Scope::kTensor ? kBatch * kElements : kElements;
      CodecSpec topk = TopKOf(static_cast<double>(k) / elements);
      topk.scope = scope;
      const uint32_t budget = scope == Scope::kTensor ? k : k * kBatch;
      FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kSplit), {1, kElements}));
      const auto codec = CodecOf(topk);
      for (int step = 0; step < 3; ++step) {
        const Tensor x = TensorOf(kShape, StepValues(step));
        const auto received = pair.Send(*codec, x, {0, 1, 2});
        ASSERT_TRUE(received.ok()) << received.status();
        EXPECT_EQ(FloatsOf(*received), FloatsOf(pair.encoded.received));
        if (step == 0) continue;  // e is zero
        EXPECT_EQ(EntriesOf(pair), budget) << topk.ToString();
      }
    }
  }
}

TEST(EfMixedBTest, ABudgetOfOneEntryIsRefusedAtBothEnds) {
  const auto codec = CodecOf(TopKOf(1.0 / (kBatch * kElements)));
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kSplit), {1, kElements}));
  const Tensor x = TensorOf(kShape, StepValues(0));
  EXPECT_EQ(pair.Send(*codec, x, {0, 1, 2}).status().code(), absl::StatusCode::kInvalidArgument);
  const std::vector<uint8_t> payload(100);
  FeedbackReceiver::Incoming incoming;
  incoming.payload = payload;
  incoming.shape = kShape;
  EXPECT_EQ(pair.receiver->Decode(*codec, incoming).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FeedbackTest, NoCompressedMessageIsLongerThanItsBound) {
  CodecSpec random, zstd = TopKOf(0.06), fp16 = TopKOf(0.3);
  random.kind = CodecKind::kRandomK;
  random.ratio = 0.06;
  zstd.lossless = Lossless::kZstd;
  fp16.values = thinwire::Values::kF16;
  for (const FeedbackKind kind :
       {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    for (const CodecSpec& spec : {TopKOf(0.06), random, zstd, fp16}) {
      const FeedbackSpec feedback = SpecOf(kind);
      const size_t most = *CompensatedMaxPayloadBytes(feedback, spec, kShape, DType::kF32);
      FeedbackPair pair(FeedbackOptionsOf(feedback, {1, kElements}));
      const auto codec = CodecOf(spec);
      for (int step = 0; step < 5; ++step) {
        const Tensor x = TensorOf(kShape, StepValues(step));
        ASSERT_TRUE(pair.Send(*codec, x, {0, 1, 2}).ok());
        EXPECT_LE(pair.payload.size(), most) << feedback.ToString() << " " << spec.ToString();
      }
    }
  }
}

TEST(EfMixedBTest, HalvesOfRandomKFallOnDifferentPlaces) {
  CodecSpec random;
  random.kind = CodecKind::kRandomK;
  random.ratio = 0.2;
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kSplit), {1, 4000}));
  const auto codec = CodecOf(random);
  int64_t nonzeros = 0;
  for (int step = 0; step < 2; ++step) {  // e is zero in the first
    FeedbackSender::Outgoing outgoing;
    outgoing.context.random_key = 100 + step;
    const Tensor x = TensorOf({1, 4000}, RandomValues(4000, step));
    const Values received = FloatsOf(*pair.Send(*codec, x, {0}, outgoing));
    nonzeros = 4000 - std::count(received.begin(), received.end(), 0.0f);
  }
  EXPECT_GT(nonzeros, 700);  // 400 each, of which about 40 meet
  EXPECT_LE(nonzeros, 800);
}

double MeanError(FeedbackKind kind, int steps) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), {1, kElements}));
  const auto codec = CodecOf(TopKOf(0.05));
  std::vector<double> difference(kBatch * kElements);
  for (int step = 0; step < steps; ++step) {
    const Values x = StepValues(0);
    const Values received = FloatsOf(*pair.Send(*codec, TensorOf(kShape, x), {0, 1, 2}));
    for (size_t i = 0; i < x.size(); ++i) difference[i] += received[i] - x[i];
  }
  double sum = 0;
  for (const double d : difference) sum += d * d;
  return std::sqrt(sum) / steps;
}

TEST(EfTest, TheMeanOfWhatIsSentTendsToTheMeanOfX) {
  const double plain = MeanError(FeedbackKind::kNone, 1000);
  EXPECT_GT(plain, 3);
  EXPECT_LT(MeanError(FeedbackKind::kEf, 100), plain / 3);
  EXPECT_LT(MeanError(FeedbackKind::kEf, 1000), plain / 30);
  EXPECT_LT(MeanError(FeedbackKind::kSplit, 1000), plain / 30);
}

TEST(EfTest, ErrorsOfARowReachThatRowOnly) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf), {1, 4}));
  CodecSpec one = TopKOf(0);
  one.k = 1;
  one.scope = Scope::kSample;
  const auto codec = CodecOf(one);
  ASSERT_TRUE(pair.Send(*codec, TensorOf({2, 4}, {3, 2, 0, 0, 0, 0, 5, 1}), {8, 9}).ok());
  // The rows come in another order: what row 8 lost, 2 at its second element, comes with the second
  // sample.
  const Tensor received = *pair.Send(*codec, TensorOf({2, 4}, {0, 0, 0, 0.5f, 0, 0, 0, 0}), {9, 8});
  EXPECT_EQ(FloatsOf(received), Values({0, 0, 0, 1.5f, 0, 2, 0, 0}));
}

TEST(Ef21Test, ConvergesOnAConstant) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21), {1, kElements}));
  const Values x = StepValues(0);
  double last = 1e9;
  for (int step = 0; step < 20; ++step) {
    const Tensor received = *pair.Send(*CodecOf(UniformOf(4)), TensorOf(kShape, x), {0, 1, 2});
    const double error =
        MeasureDistortion(TensorOf(kShape, x), received, CpuCodecKernels())->relative_error;
    EXPECT_LT(error, step < 5 ? last / 4 : 1e-6);  // 16 levels: about 1 / 15 of what was left
    last = error;
  }
}

TEST(FeedbackTest, RoundingToBFloatIsPaidBackByEf) {
  FeedbackPair pair(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf), {1, 2}, DType::kBF16));
  const Tensor x = BFloatTensorOf({1, 2}, {1, 0.001953125f});
  CodecSpec fp16;  // carries 1 + 2^-9; bf16 at the receiver does not
  fp16.kind = CodecKind::kFp16;
  const auto codec = CodecOf(fp16);
  ASSERT_TRUE(pair.Send(*codec, x, {0}).ok());
  std::vector<uint8_t> stored(8);
  const float e[2] = {0.001953125f, 0};
  std::memcpy(stored.data(), e, 8);
  ASSERT_TRUE(pair.sender->state()->Restore(0, stored).ok());
  double sum = 0;
  for (int step = 0; step < 8; ++step) sum += FloatsOf(*pair.Send(*codec, x, {0}))[0];
  EXPECT_EQ(sum, 8);  // 1 + 2^-9 rounds to 1 each time, and the 2^-9 is still there
  ASSERT_TRUE(pair.sender->state()->ReadStored(0, absl::MakeSpan(stored)).ok());
  float left[2];
  std::memcpy(left, stored.data(), 8);
  EXPECT_EQ(left[0], 0.001953125f);
}

TEST(FeedbackTest, ResidualsAreRelativeToX) {
  CodecSpec one = TopKOf(0);
  one.k = 1;
  const auto codec = CodecOf(one);
  const Tensor x = TensorOf({1, 2}, {4, 3});
  FeedbackPair ef(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf), {1, 2}));
  ASSERT_TRUE(ef.Send(*codec, x, {0}).ok());
  EXPECT_DOUBLE_EQ(*ef.sender->RelativeResidual(x), 0.6);  // e = 0, 3
  FeedbackPair ef21(FeedbackOptionsOf(SpecOf(FeedbackKind::kEf21), {1, 2}));
  ASSERT_TRUE(ef21.Send(*codec, x, {0}).ok());
  EXPECT_DOUBLE_EQ(*ef21.sender->RelativeResidual(x), 1);
  ASSERT_TRUE(ef21.Send(*codec, x, {0}).ok());
  EXPECT_DOUBLE_EQ(*ef21.sender->RelativeResidual(x), 0.6);  // A = 4, 0
  FeedbackPair none(FeedbackOptionsOf({}, {1, 2}));
  ASSERT_TRUE(none.Send(*codec, x, {}).ok());
  EXPECT_EQ(*none.sender->RelativeResidual(x), 0);
}

}  // namespace
}  // namespace thinwire
