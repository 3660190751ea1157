#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compress/codecs/axes.h"
#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

CodecSpec Principal(double step = 0.5) {
  CodecSpec spec = DefaultSpec(CodecKind::kEcsq);
  spec.step = step;
  spec.rotation = Rotation::kPrincipal;
  spec.rotation_every = 100;
  return spec;
}
CodecSpec WithoutRotation(CodecSpec spec) {
  spec.rotation = Rotation::kNone;
  spec.rotation_every = 0;
  return spec;
}

// Returns rows that consist mostly of a few sums of all channels.
std::vector<float> CorrelatedRows(int64_t rows, int64_t channels, uint64_t seed) {
  constexpr int64_t kParts = 3;
  const std::vector<float> parts = RandomValues(kParts * channels, 100);
  const std::vector<float> weights = RandomValues(rows * kParts, seed);
  std::vector<float> x = RandomValues(rows * channels, seed + 1);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      x[i * channels + c] *= 0.05f;
      for (int64_t k = 0; k < kParts; ++k) {
        x[i * channels + c] += weights[i * kParts + k] * parts[k * channels + c];
      }
    }
  }
  return x;
}

std::shared_ptr<const Axes> AxesOf(const Tensor& x) {
  return *Axes::Read(*Axes::Of(x), ChannelsOf(x.shape()), CpuDevice(), CpuCodecKernels());
}

// Returns x times a matrix, with each sum taken from left to right.
std::vector<float> Product(const std::vector<float>& x, const Tensor& matrix) {
  const int64_t k = matrix.shape()[0], n = matrix.shape()[1];
  std::vector<float> out(x.size() / k * n);
  for (size_t i = 0; i < out.size(); ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const float product = x[i / n * k + j] * matrix.floats()[j * n + i % n];
      out[i] += product;
    }
  }
  return out;
}

// Returns what a sender keeps after `messages` messages in the axes of x.
std::shared_ptr<const Carry> CarryOf(const Tensor& x, uint64_t messages = 1) {
  const std::vector<uint8_t> bytes = *Axes::Of(x);
  const std::string_view data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view count(reinterpret_cast<const char*>(&messages), sizeof(messages));
  return *CodecOf(Principal())
              ->ReadCarry({{"axes", "U8", {static_cast<int64_t>(bytes.size())}, data},
                           {"axes_messages", "U64", {1}, count}},
                          x.shape().WithBatch(1), CpuDevice());
}

absl::StatusOr<std::vector<uint8_t>> EncodeWith(const MessageContext& context, const Tensor& x,
                                                const CodecSpec& spec = Principal()) {
  const auto codec = CodecOf(spec);
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), x.dtype()));
  ASSIGN_OR_RETURN(const size_t bytes, codec->Encode(x, context, absl::MakeSpan(payload)));
  payload.resize(bytes);
  return payload;
}

TEST(AxesTest, AreThoseAlongWhichChannelsVary) {
  const Tensor x = TensorOf({4, 2}, {3, 3, -1, -1, 0.5, -0.5, 2, 2});
  const std::vector<uint8_t> bytes = *Axes::Of(x);
  ASSERT_EQ(bytes.size(), Axes::Bytes(2));
  const auto axes = AxesOf(x);
  const absl::Span<const float> from = axes->from().floats();
  EXPECT_NEAR(std::fabs(from[0]), std::sqrt(0.5), 1e-6);
  EXPECT_EQ(from[0], from[1]);
  EXPECT_EQ(from[2], -from[3]);
}

TEST(AxesTest, ThereAndBackIsNearlyNothing) {
  constexpr int64_t kChannels = 96;
  const auto axes = AxesOf(TensorOf({200, kChannels}, CorrelatedRows(200, kChannels, 1)));
  const absl::Span<const float> to = axes->to().floats();
  const std::vector<float> both = Product({to.begin(), to.end()}, axes->from());
  double off = 0;
  for (int64_t i = 0; i < kChannels * kChannels; ++i) {
    const double wanted = i % (kChannels + 1) == 0 ? 1 : 0;
    off += (both[i] - wanted) * (both[i] - wanted);
  }
  EXPECT_LT(std::sqrt(off / kChannels), 1e-3);
}

TEST(AxesTest, MalformedOnesAreRefused) {
  const std::vector<uint8_t> good = *Axes::Of(TensorOf({4, 3}, RandomValues(12, 1)));
  const auto read = [](const std::vector<uint8_t>& bytes, int64_t channels) {
    return Axes::Read(bytes, channels, CpuDevice(), CpuCodecKernels()).status();
  };
  EXPECT_TRUE(read(good, 3).ok());
  EXPECT_FALSE(read(good, 4).ok());
  for (const float scale : {-0.001f, 0.5f, NAN, INFINITY}) {
    std::vector<uint8_t> bad = good;
    std::memcpy(&bad[7], &scale, 4);
    EXPECT_THAT(std::string(read(bad, 3).message()), HasSubstr("axis 1 with scale "));
  }
}

TEST(PrincipalTest, AMessageInItsOwnAxesHasThemInFront) {
  const Shape shape = {3, 20, 24};
  const std::vector<float> values = CorrelatedRows(60, 24, 1);
  const Tensor x = TensorOf(shape, values);
  const std::vector<uint8_t> payload = *EncodeToBytes(Principal(), x), axes = *Axes::Of(x);
  EXPECT_EQ(payload[0], 2);
  const auto behind = payload.begin() + 1 + static_cast<ptrdiff_t>(axes.size());
  EXPECT_EQ(std::vector<uint8_t>(payload.begin() + 1, behind), axes);
  const Tensor rotated = TensorOf(shape, Product(values, AxesOf(x)->to()));
  const std::vector<uint8_t> inner = *EncodeToBytes(WithoutRotation(Principal()), rotated);
  EXPECT_EQ(std::vector<uint8_t>(behind, payload.end()), inner);
  const Tensor decoded = *DecodeFromBytes(WithoutRotation(Principal()), inner, shape);
  EXPECT_EQ(*RoundTrip(Principal(), x), Product(FloatsOf(decoded), AxesOf(x)->from()));
}

TEST(PrincipalTest, InAxesThatBothHaveNoneTravel) {
  const Tensor before = TensorOf({50, 16}, CorrelatedRows(50, 16, 1));
  const Tensor x = TensorOf({2, 9, 16}, CorrelatedRows(18, 16, 3));
  const auto carry = CarryOf(before);
  MessageContext context;
  context.carry = carry.get();
  const std::vector<uint8_t> payload = *EncodeWith(context, x);
  EXPECT_EQ(payload[0], 1);
  Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, x.shape());
  const auto codec = CodecOf(Principal());
  ASSERT_TRUE(codec->Decode(payload, context, &y).ok());
  double lost = 0, all = 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    lost += std::pow(x.floats()[i] - y.floats()[i], 2);
    all += std::pow(x.floats()[i], 2);
  }
  EXPECT_LT(std::sqrt(lost / all), 0.2);
  EXPECT_THAT(std::string(codec->Decode(payload, {}, &y).message()),
              HasSubstr("in the axes of a message before"));
  std::shared_ptr<const Carry> next = carry;
  context.next_carry = &next;
  ASSERT_TRUE(codec->Decode(payload, context, &y).ok());
  EXPECT_EQ(next, carry);
}

TEST(PrincipalTest, WithoutAxesATensorGoesAsItIs) {
  const Tensor x = TensorOf({5, 16}, RandomValues(80, 1));
  std::vector<uint8_t> payload = *EncodeWith({}, x);
  EXPECT_EQ(payload[0], 0);
  payload.erase(payload.begin());
  EXPECT_EQ(payload, *EncodeToBytes(WithoutRotation(Principal()), x));
}

TEST(PrincipalTest, CorrelatedChannelsTakeFewerBitsAndLoseLess) {
  const Tensor x = TensorOf({400, 64}, CorrelatedRows(400, 64, 1));
  const auto carry = CarryOf(x);
  MessageContext context;
  context.carry = carry.get();
  EXPECT_LT(3 * EncodeWith(context, x)->size(),
            EncodeToBytes(WithoutRotation(Principal()), x)->size());
}

TEST(PrincipalTest, BFloatsAreTheNumbersThatTheyAre) {
  std::vector<float> values = CorrelatedRows(30, 8, 1);
  const Tensor x = BFloatTensorOf({30, 8}, values);
  const Tensor same = TensorOf({30, 8}, FloatsOf(x));
  EXPECT_EQ(*EncodeToBytes(Principal(), x), *EncodeToBytes(Principal(), same));
}

TEST(PrincipalTest, EveryCutAndWhatFollowsIsRefused) {
  const Tensor x = TensorOf({6, 5}, CorrelatedRows(6, 5, 1));
  std::vector<uint8_t> payload = *EncodeToBytes(Principal(), x);
  for (size_t length = 0; length < payload.size(); ++length) {
    const std::vector<uint8_t> cut(payload.begin(), payload.begin() + length);
    EXPECT_FALSE(DecodeFromBytes(Principal(), cut, x.shape()).ok()) << length;
  }
  payload[0] = 3;
  EXPECT_THAT(std::string(DecodeFromBytes(Principal(), payload, x.shape()).status().message()),
              HasSubstr("form 3, want 0 to 2"));
}

TEST(PrincipalTest, NaNIsRefusedByItsPlaceInTheTensor) {
  std::vector<float> values = RandomValues(20, 1);
  values[7] = NAN;
  const Tensor x = TensorOf({5, 4}, values);
  MessageContext context;
  const auto carry = CarryOf(TensorOf({5, 4}, RandomValues(20, 2)), Principal().rotation_every);
  context.carry = carry.get();
  for (const bool takes_axes : {true, false}) {
    std::shared_ptr<const Carry> next = carry;
    context.next_carry = takes_axes ? &next : nullptr;
    const absl::Status status = EncodeWith(context, x).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("element 7"));
  }
}

TEST(PrincipalTest, PartsThatAreNoAxesAreRefused) {
  const auto carry = CarryOf(TensorOf({5, 4}, RandomValues(20, 2)));
  const std::vector<StoredTensor> good = carry->Parts();
  const auto read = [](const std::vector<StoredTensor>& parts, const Shape& sample) {
    return std::string(
        CodecOf(Principal())->ReadCarry(parts, sample, CpuDevice()).status().message());
  };
  EXPECT_EQ(read({good[1], good[0]}, {1, 4}), "");
  EXPECT_THAT(read({good[0]}, {1, 4}), HasSubstr("axes U8 [32], want what codec ecsq("));
  std::vector<StoredTensor> bad = good;
  bad[1].data = bad[1].data.substr(1);
  EXPECT_THAT(read(bad, {1, 4}), HasSubstr("want what codec ecsq("));
  EXPECT_THAT(read(good, {1, 5}), HasSubstr("axes of 32 bytes for 5 channels"));
}

TEST(PrincipalTest, MoreChannelsThanAxesCanHaveAreRefused) {
  const Tensor x = TensorOf({1, 4097}, RandomValues(4097, 1));
  EXPECT_THAT(std::string(EncodeToBytes(Principal(), x).status().message()),
              HasSubstr("4097 channels, want at most 4096"));
}

TEST(PrincipalTest, SpecificationsThatAreNoneAreRefused) {
  CodecSpec spec = Principal();
  spec.rotation_every = 0;
  EXPECT_THAT(std::string(CheckSpec(spec).message()), HasSubstr("rotation_every is 0"));
  spec = Principal();
  spec.support = Support::kReceivedNonzero;
  EXPECT_THAT(std::string(CheckSpec(spec).message()), HasSubstr("with support received_nonzero"));
  spec = Principal();
  spec.rotation = Rotation::kHadamard;
  EXPECT_THAT(std::string(CheckSpec(spec).message()), HasSubstr("want none or principal"));
  CodecSpec uniform = DefaultSpec(CodecKind::kUniform);
  uniform.rotation = Rotation::kPrincipal;
  EXPECT_THAT(std::string(CheckSpec(uniform).message()), HasSubstr("want none or hadamard"));
}

}  // namespace
}  // namespace thinwire
