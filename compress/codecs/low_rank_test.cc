#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compress/checks/distortion.h"
#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec LowRank(uint32_t rank, bool per_sample = false) {
  CodecSpec spec;
  spec.kind = CodecKind::kLowRank;
  spec.rank = rank;
  spec.per_sample = per_sample;
  return spec;
}

// Returns the product of random factors.
std::vector<float> OfRank(int64_t rows, int64_t columns, int64_t rank, uint64_t seed = 1) {
  const std::vector<float> a = RandomValues(rows * rank, seed);
  const std::vector<float> b = RandomValues(columns * rank, seed + 100);
  std::vector<float> m(rows * columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < rank; ++j) {
      sum += static_cast<double>(a[i / columns * rank + j]) * b[i % columns * rank + j];
    }
    m[i] = static_cast<float>(sum);
  }
  return m;
}

using CarryPtr = std::shared_ptr<const Carry>;

absl::StatusOr<CarryPtr> Read(const CodecSpec& spec, const StoredTensor& part) {
  return CodecOf(spec)->ReadCarry({part}, {}, CpuDevice());
}

CarryPtr FactorOf(const CodecSpec& spec, const Tensor& q) {
  const Shape& shape = q.shape();
  return *Read(spec, {"warm_start",
                      "F32",
                      {shape.begin(), shape.end()},
                      {static_cast<const char*>(q.data()), q.bytes()}});
}

double ErrorOf(const CodecSpec& spec, const Tensor& x, const CarryPtr& carry = nullptr,
               CarryPtr* next = nullptr) {
  const auto codec = CodecOf(spec);
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), x.dtype()));
  MessageContext context;
  context.carry = carry.get();
  context.next_carry = next;
  EXPECT_EQ(*codec->Encode(x, context, absl::MakeSpan(payload)), payload.size());
  const Tensor y = *DecodeFromBytes(spec, payload, x.shape());
  return MeasureDistortion(x, y, CpuCodecKernels())->relative_error;
}

// Returns the relative error of the best approximation of that rank, by subspace iteration in
// double on the smaller side, with far more steps than any codec takes.
double BestError(const std::vector<float>& m, size_t rows, size_t columns, size_t rank) {
  std::vector<double> gram(columns * columns), q(columns * rank), next(columns * rank);
  double total = 0;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t a = 0; a < columns; ++a) {
      const double value = m[i * columns + a];
      total += value * value;
      for (size_t b = 0; b < columns; ++b) gram[a * columns + b] += value * m[i * columns + b];
    }
  }
  for (size_t i = 0; i < q.size(); ++i) q[i] = std::sin(1.0 + 7.0 * i);
  double kept = 0;
  for (int step = 0; step < 2000; ++step) {
    kept = 0;
    for (size_t j = 0; j < rank; ++j) {
      double* to = &next[j * columns];
      for (size_t a = 0; a < columns; ++a) {
        to[a] = 0;
        for (size_t b = 0; b < columns; ++b) to[a] += gram[a * columns + b] * q[j * columns + b];
      }
      for (size_t k = 0; k < j; ++k) {
        double along = 0;
        for (size_t a = 0; a < columns; ++a) along += to[a] * next[k * columns + a];
        for (size_t a = 0; a < columns; ++a) to[a] -= along * next[k * columns + a];
      }
      double length = 0;
      for (size_t a = 0; a < columns; ++a) length += to[a] * to[a];
      length = std::sqrt(length);
      for (size_t a = 0; a < columns; ++a) to[a] /= length;
      kept += length;
    }
    q = next;
  }
  return std::sqrt(std::max(0.0, total - kept) / total);
}

TEST(LowRankTest, IsExactForMatricesOfThatRankOrLess) {
  for (const Shape& shape : {Shape{6, 5, 5, 24}, Shape{9, 7, 33}, Shape{40, 17}}) {
    const int64_t columns = shape[shape.rank() - 1];
    for (int64_t rank : {1, 3, 4}) {
      const Tensor x = TensorOf(shape, OfRank(shape.elements() / columns, columns, rank));
      EXPECT_LT(ErrorOf(LowRank(4), x), 1e-6) << shape.ToString() << " of rank " << rank;
    }
  }
}

TEST(LowRankTest, PerSampleEverySampleHasItsOwnFactors) {
  const Shape shape = {3, 8, 8, 10};
  std::vector<float> values;
  for (uint64_t sample = 0; sample < 3; ++sample) {
    const std::vector<float> own = OfRank(64, 10, 2, sample);
    values.insert(values.end(), own.begin(), own.end());
  }
  const Tensor x = TensorOf(shape, values);
  EXPECT_LT(ErrorOf(LowRank(2, /*per_sample=*/true), x), 1e-6);
  EXPECT_GT(ErrorOf(LowRank(2), x), 0.1);
}

TEST(LowRankTest, WarmStartsComeNearToTheBestApproximation) {
  constexpr size_t kRows = 300, kColumns = 24, kRank = 3;
  std::vector<float> m = OfRank(kRows, kColumns, kRank);
  const std::vector<float> noise = RandomValues(m.size(), 9);
  for (size_t i = 0; i < m.size(); ++i) m[i] += 0.3f * noise[i];
  const Tensor x = TensorOf({kRows, kColumns}, m);
  const double best = BestError(m, kRows, kColumns, kRank);
  CarryPtr start;
  double error = ErrorOf(LowRank(kRank), x, nullptr, &start);
  EXPECT_GT(error, 1.02 * best);  // one step from a fresh start is not enough
  for (int step = 0; step < 30; ++step) {
    const double next = ErrorOf(LowRank(kRank), x, start, &start);
    EXPECT_LE(next, error * (1 + 1e-6)) << "step " << step;
    error = next;
  }
  EXPECT_NEAR(error, best, 1e-5 * best);
}

TEST(LowRankTest, LeavesTheFactorQOfItsPayload) {
  const Shape shape = {2, 6, 5};
  const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 1));
  CarryPtr start;
  ErrorOf(LowRank(2), x, nullptr, &start);
  EXPECT_THAT(start->Parts()[0].shape, ElementsAre(5, 2));
  const std::vector<uint8_t> payload = *EncodeToBytes(LowRank(2), x);
  EXPECT_EQ(DataOfPart(start, "warm_start"),
            std::string(payload.begin() + 4 * 12 * 2, payload.end()));
  ErrorOf(LowRank(2, /*per_sample=*/true), x, nullptr, &start);
  EXPECT_THAT(start->Parts()[0].shape, ElementsAre(2, 5, 2));
}

TEST(LowRankTest, AMessageWithoutElementsLeavesNothing) {
  const CodecSpec spec = LowRank(2);
  CarryPtr next = FactorOf(spec, TensorOf({5, 2}, RandomValues(10, 1)));
  ErrorOf(spec, TensorOf({0, 6, 5}, {}), next, &next);
  EXPECT_EQ(next, nullptr);
}

TEST(LowRankTest, PartsThatAreNoFactorAreRefused) {
  const std::string data(8, '\0');
  for (const StoredTensor& part :
       {StoredTensor{"axes", "F32", {1, 2}, data}, StoredTensor{"warm_start", "U64", {1}, data},
        StoredTensor{"warm_start", "F32", {}, std::string_view(data).substr(4)}}) {
    const absl::Status status = Read(LowRank(2), part).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("want what codec low_rank(rank=2"));
  }
  EXPECT_FALSE(Read(DefaultSpec(CodecKind::kFp16), {"warm_start", "F32", {2}, data}).ok());
}

TEST(LowRankTest, AFactorThatIsNotFiniteIsRefused) {
  for (const float value : {NAN, -INFINITY}) {
    const std::string data(reinterpret_cast<const char*>(&value), 4);
    const absl::Status status = Read(LowRank(2), {"warm_start", "F32", {1, 1}, data}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("warm_start has "));
  }
}

TEST(LowRankTest, AWarmStartOfAnotherShapeIsAFreshStart) {
  const Tensor x = TensorOf({12, 7}, RandomValues(84, 1));
  const auto other = FactorOf(LowRank(2), TensorOf({7, 3}, RandomValues(21, 2)));
  EXPECT_EQ(ErrorOf(LowRank(2), x, other), ErrorOf(LowRank(2), x));
  const Tensor samples = TensorOf({2, 12, 7}, RandomValues(168, 1));
  const CodecSpec spec = LowRank(2, /*per_sample=*/true);
  const auto of_one = FactorOf(spec, TensorOf({7, 2}, RandomValues(14, 2)));
  EXPECT_EQ(ErrorOf(spec, samples, of_one), ErrorOf(spec, samples));
  const auto wide = FactorOf(spec, TensorOf({2, 7, 3}, RandomValues(42, 2)));
  EXPECT_EQ(ErrorOf(spec, samples, wide), ErrorOf(spec, samples));
}

TEST(LowRankTest, PerSampleAStartOfMoreOrFewerSamplesServesThoseItHas) {
  const CodecSpec spec = LowRank(2, /*per_sample=*/true);
  const Tensor x = TensorOf({3, 12, 7}, RandomValues(252, 1));
  const std::vector<float> values = RandomValues(4 * 14, 2);
  const auto payload_from = [&](int64_t samples, std::vector<float> start) {
    start.resize(14 * samples);
    const auto carry = FactorOf(spec, TensorOf({samples, 7, 2}, start));
    MessageContext context;
    context.carry = carry.get();
    std::vector<uint8_t> payload(CodecOf(spec)->MaxPayloadBytes(x.shape(), x.dtype()));
    EXPECT_TRUE(CodecOf(spec)->Encode(x, context, absl::MakeSpan(payload)).ok());
    return payload;
  };
  EXPECT_EQ(payload_from(4, values), payload_from(3, values));
  const std::vector<uint8_t> full = payload_from(3, values), short_by_one = payload_from(2, values);
  const std::vector<uint8_t> fresh = *EncodeToBytes(spec, x);
  const auto last = static_cast<std::ptrdiff_t>(full.size() / 3 * 2);
  EXPECT_TRUE(std::equal(full.begin(), full.begin() + last, short_by_one.begin()));
  EXPECT_TRUE(std::equal(fresh.begin() + last, fresh.end(), short_by_one.begin() + last));
  EXPECT_FALSE(std::equal(fresh.begin(), fresh.begin() + last, short_by_one.begin()));
}

// Tests messages after one of lower rank, which leaves columns of Q at zero: they must recover.
TEST(LowRankTest, AColumnOfZerosInTheWarmStartStartsAfresh) {
  const Tensor zeros = TensorOf({30, 9}, std::vector<float>(270));
  CarryPtr start;
  EXPECT_EQ(ErrorOf(LowRank(3), zeros, nullptr, &start), 0);
  const Tensor x = TensorOf({30, 9}, OfRank(30, 9, 3));
  EXPECT_LT(ErrorOf(LowRank(3), x, start), 1e-6);
}

TEST(LowRankTest, RefusesARankThatSavesNothing) {
  const auto refusal = [](const CodecSpec& spec, const Shape& shape) {
    return std::string(
        EncodeToBytes(spec, TensorOf(shape, RandomValues(shape.elements(), 1))).status().message());
  };
  EXPECT_THAT(refusal(LowRank(8), {4, 4, 8}), HasSubstr("rank 8 of a matrix of 16 x 8"));
  EXPECT_THAT(refusal(LowRank(3), {3, 8}), HasSubstr("rank 3 of a matrix of 3 x 8"));
  EXPECT_THAT(refusal(LowRank(1, true), {3, 8}), HasSubstr("rank 1 of a matrix of 1 x 8"));
  EXPECT_THAT(refusal(LowRank(1), {9}), HasSubstr("rank 1 of a matrix of 9 x 1"));
  EXPECT_EQ(refusal(LowRank(7), {4, 4, 8}), "");
}

TEST(LowRankTest, TinyAndLargeValuesKeepTheirRank) {
  for (float scale : {1e-30f, 1e-37f, 1e25f, 1e36f}) {
    std::vector<float> m = OfRank(40, 12, 2);
    for (float& value : m) value *= scale;
    EXPECT_LT(ErrorOf(LowRank(2), TensorOf({40, 12}, m)), 1e-6) << scale;
  }
}

TEST(LowRankTest, RefusesValuesThatAreNotFinite) {
  for (float value : {std::nanf(""), std::numeric_limits<float>::infinity(),
                      -std::numeric_limits<float>::infinity()}) {
    for (size_t where : {0u, 100u, 199u}) {
      std::vector<float> m = RandomValues(200, 1);
      m[where] = value;
      EXPECT_THAT(EncodeToBytes(LowRank(2), TensorOf({20, 10}, m)).status().message(),
                  HasSubstr("low_rank: element " + std::to_string(where)));
    }
  }
}

TEST(LowRankTest, RefusesFactorsThatAreNotFinite) {
  const Shape shape = {20, 10};
  const std::vector<uint8_t> good =
      *EncodeToBytes(LowRank(2), TensorOf(shape, RandomValues(200, 1)));
  for (size_t at = 0; at < good.size(); at += 4) {
    std::vector<uint8_t> bad = good;
    bad[at + 2] |= 0x80;
    bad[at + 3] |= 0x7F;
    EXPECT_EQ(DecodeFromBytes(LowRank(2), bad, shape).status().code(),
              absl::StatusCode::kInvalidArgument)
        << at;
  }
}

TEST(LowRankTest, RefusesFactorsWhoseProductOverflows) {
  std::vector<uint8_t> payload(4 * 2 * 6);
  const float large = 1e30f;
  for (size_t i = 0; i < payload.size(); i += 4) std::memcpy(&payload[i], &large, 4);
  EXPECT_FALSE(DecodeFromBytes(LowRank(2), payload, {3, 3}).ok());
}

TEST(LowRankTest, RefusesFactorsThatFp32CannotHold) {
  const Tensor x = TensorOf({64, 8}, std::vector<float>(512, 3e38f));
  EXPECT_THAT(EncodeToBytes(LowRank(2), x).status().message(), HasSubstr("factor of"));
}

TEST(LowRankTest, EveryCutIsRefused) {
  const Shape shape = {2, 5, 7};
  for (bool per_sample : {false, true}) {
    const CodecSpec spec = LowRank(3, per_sample);
    const std::vector<uint8_t> payload =
        *EncodeToBytes(spec, TensorOf(shape, RandomValues(shape.elements(), 2)));
    for (size_t length = 0; length < payload.size(); ++length) {
      const std::vector<uint8_t> cut(payload.begin(), payload.begin() + length);
      EXPECT_FALSE(DecodeFromBytes(spec, cut, shape).ok()) << length;
    }
  }
}

TEST(LowRankTest, ATrailingByteIsRefused) {
  const Tensor x = TensorOf({9, 7}, RandomValues(63, 2));
  std::vector<uint8_t> payload = *EncodeToBytes(LowRank(2), x);
  payload.push_back(0);
  EXPECT_FALSE(DecodeFromBytes(LowRank(2), payload, x.shape()).ok());
}

TEST(LowRankTest, RefusesPayloadMemoryThatIsTooSmall) {
  const Tensor x = TensorOf({9, 7}, RandomValues(63, 2));
  std::vector<uint8_t> payload(4 * 2 * 16 - 1);
  EXPECT_THAT(CodecOf(LowRank(2))->Encode(x, {}, absl::MakeSpan(payload)).status().message(),
              HasSubstr("127 bytes, want 128"));
}

TEST(LowRankTest, EmptyTensorsTravel) {
  const Shape shape = {0, 7};
  EXPECT_TRUE(EncodeToBytes(LowRank(2), TensorOf(shape, {}))->empty());
  EXPECT_TRUE(DecodeFromBytes(LowRank(2), {}, shape).ok());
}

TEST(LowRankTest, BFloatTensorsAreWidenedExactly) {
  const Shape shape = {30, 9};
  std::vector<float> x = RandomValues(shape.elements(), 4);
  for (float& value : x) value = std::round(value * 64) / 64;  // fits bf16's eight bits
  EXPECT_EQ(*EncodeToBytes(LowRank(3), BFloatTensorOf(shape, x)),
            *EncodeToBytes(LowRank(3), TensorOf(shape, x)));
}

TEST(LowRankTest, GivesTheSameBitsOnEverySimdTarget) {
  const auto everything = [] {
    std::vector<std::vector<float>> all;
    for (const Shape& shape : {Shape{3, 11, 13}, Shape{2, 70, 67}, Shape{4, 9, 9, 8}}) {
      for (uint32_t rank : {1, 3, 7}) {
        for (bool per_sample : {false, true}) {
          const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 1));
          const auto payload = *EncodeToBytes(LowRank(rank, per_sample), x);
          all.emplace_back(payload.begin(), payload.end());
          all.push_back(FloatsOf(*DecodeFromBytes(LowRank(rank, per_sample), payload, shape)));
        }
      }
    }
    return all;
  };
  const auto best = everything();
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(everything(), best) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace thinwire
