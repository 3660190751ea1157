// Tests of kept values as cells with means: those that fp32 would have kept, by the formula of
// docs/compression.md; and what the top of each group takes with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "compress/checks/distortion.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/layout.h"
#include "compress/spec_text.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec CodecNamed(const std::string& text) {
  const auto spec = ParseCodec(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

std::string RefusalOf(const std::string& text) {
  return std::string(ParseCodec(text).status().message());
}

// Computes one group with the operations of docs/compression.md, with a map of cells to values.
void ReplaceByMeans(uint32_t bits, float* v, size_t n) {
  float largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(v[i]));
  const double unit = largest > 0 ? std::exp2(std::ilogb(largest) - 30) : 1;
  std::map<uint32_t, std::vector<size_t>> cells;
  for (size_t i = 0; i < n; ++i) cells[0].push_back(i);
  const auto sum_of = [&](const std::vector<size_t>& members) {
    uint64_t sum = 0;
    for (size_t i : members) sum += std::llrint(std::fabs(v[i]) / unit);
    return sum;
  };
  for (uint32_t bit = 1; bit < bits; ++bit) {
    std::map<uint32_t, std::vector<size_t>> halves;
    for (const auto& [cell, members] : cells) {
      const uint64_t sum = sum_of(members);
      for (size_t i : members) {
        const auto units = static_cast<uint64_t>(std::llrint(std::fabs(v[i]) / unit));
        halves[2 * cell + (units * members.size() > sum)].push_back(i);
      }
    }
    cells = halves;
  }
  std::vector<float> replaced(n);
  for (const auto& [cell, members] : cells) {
    const double mean = static_cast<double>(sum_of(members)) / static_cast<double>(members.size());
    for (size_t i : members) replaced[i] = std::copysign(static_cast<float>(mean * unit), v[i]);
  }
  std::copy(replaced.begin(), replaced.end(), v);
}

// Returns what arrives of x: the values of the entries that topk with fp32 keeps, in memory order.
std::vector<float> Replaced(CodecSpec spec, const Tensor& x) {
  CodecSpec exact = spec;
  exact.values = Values::kF32;
  if (spec.scope != Scope::kGroup) exact.group = 0;
  std::vector<float> y = *RoundTrip(exact, x);
  std::vector<float> kept;
  for (float value : y) {
    if (value != 0) kept.push_back(value);
  }
  const size_t group = spec.group > 0 ? spec.group : kept.size();
  for (size_t i = 0; i < kept.size(); i += group) {
    ReplaceByMeans(spec.bits, &kept[i], std::min(group, kept.size() - i));
  }
  auto next = kept.begin();
  for (float& value : y) {
    if (value != 0) value = *next++;
  }
  return y;
}

TEST(ValuesMeansTest, ArriveAsTheFormulaSays) {
  for (const Shape& shape : {Shape{1}, Shape{7, 1, 5}, Shape{4, 9, 33}, Shape{3, 5000}}) {
    std::vector<float> heavy = RandomValues(shape.elements(), 3);
    for (float& value : heavy) value *= std::exp(10 * value);
    for (const auto& values : {RandomValues(shape.elements(), 3), heavy}) {
      const Tensor x = TensorOf(shape, values);
      for (const char* scope : {"tensor", "sample", "channel", "group"}) {
        for (uint32_t group : {0, 1, 7, 64, 100000}) {
          for (uint32_t bits : {1, 2, 3, 4}) {
            CodecSpec spec = CodecNamed("topk(ratio=0.3, values=means)");
            ASSERT_TRUE(FromName(scope, &spec.scope).ok());
            spec.bits = bits;
            spec.group = group;
            if (!CheckSpec(spec).ok()) continue;  // scope group without a group
            EXPECT_EQ(*RoundTrip(spec, x), Replaced(spec, x))
                << spec.ToString() << shape.ToString();
          }
        }
      }
    }
  }
}

TEST(ValuesMeansTest, FewValuesAreTheirOwnMeans) {
  const CodecSpec spec = CodecNamed("topk(ratio=1, scope=tensor, values=means)");
  EXPECT_THAT(*RoundTrip(spec, TensorOf({-3, 0, 3, 1, 1, -1})), ElementsAre(-3, 0, 3, 1, 1, -1));
  EXPECT_THAT(*RoundTrip(spec, TensorOf({0, 0})), ElementsAre(0, 0));
  EXPECT_THAT(*RoundTrip(spec, TensorOf({1, -3e38f})), ElementsAre(0, -3e38f));  // no unit
  EXPECT_THAT(*RoundTrip(spec, TensorOf({1e-45f, -1e-45f, 4e-45f})),
              ElementsAre(1e-45f, -1e-45f, 4e-45f));
}

TEST(ValuesMeansTest, ALargeValueDoesNotHideTheOthers) {
  const CodecSpec spec = CodecNamed("topk(ratio=1, scope=tensor, values=means)");
  EXPECT_THAT(*RoundTrip(spec, TensorOf({1, -1, 1, 1000})), ElementsAre(1, -1, 1, 1000));
}

TEST(ValuesMeansTest, AShortLastGroupKeepsItsShare) {
  const CodecSpec spec = CodecNamed("topk(ratio=0.5, scope=group, group=4, values=fp32)");
  EXPECT_THAT(*RoundTrip(spec, TensorOf({1, 2, 3, 4, 4, 3, 2, 1, 5, 6})),
              ElementsAre(0, 0, 3, 4, 4, 3, 0, 0, 0, 6));
}

TEST(ValuesMeansTest, MoreEntriesThanAShortLastGroupKeepsAreRefused) {
  const CodecSpec by_group = CodecNamed("topk(ratio=0.5, scope=group, group=4, values=fp32)");
  const CodecSpec whole = CodecNamed("topk(ratio=0.5, scope=tensor, values=fp32)");
  const Tensor x = TensorOf({0, 0, 0, 4, 0, 1});
  EXPECT_TRUE(DecodeFromBytes(by_group, *EncodeToBytes(whole, x), {6}).ok());
  const Tensor y = TensorOf({0, 0, 0, 4, 1, 1});
  EXPECT_THAT(
      std::string(DecodeFromBytes(by_group, *EncodeToBytes(whole, y), {6}).status().message()),
      HasSubstr("more than"));
}

TEST(ValuesMeansTest, UnusedBitsAndMeansThatAreNoNumbersAreRefused) {
  const CodecSpec spec = CodecNamed("topk(ratio=1, scope=tensor, values=means)");
  const auto payload = *EncodeToBytes(spec, TensorOf({1, 2, 3}));
  auto unused = payload;
  unused[8 + 8] |= 0xC0;  // behind the third code of two bits
  EXPECT_THAT(std::string(DecodeFromBytes(spec, unused, {3}).status().message()),
              HasSubstr("topk: unused bits of the last byte"));
  auto infinite = payload;
  infinite[8 + 3] = 0x7F;
  infinite[8 + 2] = 0x80;
  EXPECT_THAT(std::string(DecodeFromBytes(spec, infinite, {3}).status().message()),
              HasSubstr("a value is NaN or infinite"));
}

TEST(ValuesMeansTest, RefusalsNameWhatTheyWant) {
  EXPECT_THAT(RefusalOf("topk(ratio=0.1, values=means, bits=5)"),
              HasSubstr("topk: bits is 5, want 1 to 4 with values means"));
  EXPECT_THAT(RefusalOf("topk(indices=shared, values=means)"),
              HasSubstr("values is means with indices shared, want fp32, fp16, bf16 or uniform"));
  EXPECT_THAT(RefusalOf("topk(ratio=0.1, scope=group)"),
              HasSubstr("group is 0 with scope group, want a number of elements"));
  EXPECT_THAT(RefusalOf("randomk(ratio=0.1, scope=group)"),
              HasSubstr("scope is group, want one of tensor, sample, channel, token"));
}

// The piece of a parameter that replicas send, and values of three kinds of tails.
constexpr size_t kPiece = size_t{1} << 20;

float Normal(RandomStream* random) {
  const float radius = std::sqrt(-2 * std::log(1 - random->NextFloat()));
  return radius * std::cos(6.2831853f * random->NextFloat());
}

std::vector<float> PieceOf(const std::string& tail) {
  RandomStream random(RandomKey(1, tail));
  std::vector<float> values(kPiece);
  for (float& value : values) {
    value = Normal(&random);
    if (tail == "laplace") {
      value = std::copysign(std::log(1 - random.NextFloat()), value);
    } else if (tail == "student") {  // of three degrees of freedom
      const float a = Normal(&random), b = Normal(&random), c = Normal(&random);
      value /= std::sqrt((a * a + b * b + c * c) / 3);
    }
  }
  return values;
}

class TopOfGroupsTest : public testing::TestWithParam<const char*> {
 protected:
  TopOfGroupsTest() : x_(TensorOf(PieceOf(GetParam()))) {}

  double BitsOf(const std::string& codec) const {
    return 8.0 * static_cast<double>(EncodeToBytes(CodecNamed(codec), x_)->size()) / kPiece;
  }
  double ErrorOf(const std::string& codec) const {
    const Tensor y = TensorOf(*RoundTrip(CodecNamed(codec), x_));
    return MeasureDistortion(x_, y, CpuCodecKernels())->relative_error;
  }

  const Tensor x_;
};
INSTANTIATE_TEST_SUITE_P(Tails, TopOfGroupsTest, testing::Values("normal", "laplace", "student"),
                         [](const auto& info) { return std::string(info.param); });

constexpr char kTop64Of4096[] = "topk(ratio=0.015625, scope=group, group=4096, values=";

// SparseLoCo (arXiv 2508.15706) sends 12 bits for each of these places and 2 for its value: 0.219
// bits for each parameter.
TEST_P(TopOfGroupsTest, Top64Of4096WithTwoBitsTakesLessThan015Bits) {
  EXPECT_LE(BitsOf(std::string(kTop64Of4096) + "means, bits=2)"), 0.150);
}

TEST_P(TopOfGroupsTest, MeansLoseLessThanAUniformGridOfAsManyBits) {
  const std::string top = kTop64Of4096;
  double before = ErrorOf(top + "uniform, bits=2)");
  for (const char* bits : {"1", "2", "3", "4"}) {
    const double error = ErrorOf(top + "means, bits=" + bits + ")");
    EXPECT_LT(error, before) << bits;
    before = error;
  }
  EXPECT_LT(ErrorOf(top + "fp32)"), before);
  EXPECT_LT(before, 1.03 * ErrorOf(top + "fp32)"));
}

}  // namespace
}  // namespace thinwire
