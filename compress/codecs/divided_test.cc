// Tests of outlier channels and first positions, which go beside what the codec gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "compress/bytes.h"
#include "compress/codecs/division.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/half.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSequenceCount = 2, kPositions = 5, kRowElements = 8;
const Shape kSequences = {kSequenceCount, kPositions, kRowElements};

CodecSpec WithOutliers(uint32_t outliers, CodecKind kind = CodecKind::kUniform) {
  CodecSpec spec = DefaultSpec(kind);
  spec.scope = Scope::kToken;
  spec.outliers = outliers;
  return spec;
}
CodecSpec WithFirstPosition(CodecSpec spec) {
  spec.first_position = FirstPosition::kExact;
  return spec;
}

bool IsOutlier(int64_t element) {
  return element % kRowElements == 2 || element % kRowElements == 5;
}
bool IsFirst(int64_t element) { return element / kRowElements % kPositions == 0; }

// Returns normal values, but for two channels a hundred times as large.
std::vector<float> ValuesWithOutliers(uint64_t seed = 1) {
  std::vector<float> values = RandomValues(kSequences.elements(), seed);
  for (size_t i = 0; i < values.size(); ++i) values[i] *= IsOutlier(i) ? 100 : 1;
  return values;
}

// Returns the elements that the predicate takes, in their order.
template <typename Takes>
std::vector<float> Those(const std::vector<float>& values, const Takes& takes) {
  std::vector<float> some;
  for (size_t i = 0; i < values.size(); ++i) {
    if (takes(static_cast<int64_t>(i))) some.push_back(values[i]);
  }
  return some;
}

std::vector<float> BF16Of(std::vector<float> values) {
  for (float& value : values) value = FromBFloat(ToBFloat(value));
  return values;
}

struct Coded {
  absl::StatusOr<std::vector<uint8_t>> payload;
  std::shared_ptr<const Carry> next;
};
Coded EncodeAfter(const std::shared_ptr<const Carry>& carry, const CodecSpec& spec, const Tensor& x,
                  bool keeps = true, bool begins_sequences = true) {
  const auto codec = CodecOf(spec);
  Coded coded = {std::vector<uint8_t>(codec->MaxPayloadBytes(x.shape(), x.dtype())), carry};
  MessageContext context = {1, nullptr, carry.get(), keeps ? &coded.next : nullptr};
  context.begins_sequences = begins_sequences;
  const auto bytes = codec->Encode(x, context, absl::MakeSpan(*coded.payload));
  if (bytes.ok()) {
    coded.payload->resize(*bytes);
  } else {
    coded.payload = bytes.status();
  }
  return coded;
}

absl::StatusOr<std::vector<float>> DecodeAfter(const std::shared_ptr<const Carry>& carry,
                                               const CodecSpec& spec,
                                               const std::vector<uint8_t>& payload,
                                               const Shape& shape = kSequences) {
  Tensor y = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  RETURN_IF_ERROR(CodecOf(spec)->Decode(payload, {0, nullptr, carry.get()}, &y));
  return FloatsOf(y);
}

std::string DecodeError(const CodecSpec& spec, const std::vector<uint8_t>& payload,
                        const std::shared_ptr<const Carry>& carry = nullptr) {
  return std::string(DecodeAfter(carry, spec, payload).status().message());
}

std::shared_ptr<const Carry> CarryOfChannels(std::vector<uint32_t> channels,
                                             const CodecSpec& spec) {
  const std::string_view data(reinterpret_cast<const char*>(channels.data()), 4 * channels.size());
  const auto count = static_cast<int64_t>(channels.size());
  return *CodecOf(spec)->ReadCarry({{"outliers", "U32", {count}, data}}, kSequences.WithBatch(1),
                                   CpuDevice());
}

std::string Channels(const Coded& coded) { return DataOfPart(coded.next, "outliers"); }

TEST(OutliersTest, GoAsBF16AndTheOthersAsTheCodecCodesThemAlone) {
  const std::vector<float> values = ValuesWithOutliers();
  const auto is_other = [](int64_t i) { return !IsOutlier(i); };
  std::vector<float> zeroed = values;
  for (size_t i = 0; i < zeroed.size(); ++i) zeroed[i] = IsOutlier(i) ? 0 : zeroed[i];
  for (const CodecKind kind : {CodecKind::kUniform, CodecKind::kEcsq}) {
    const std::vector<float> met = *RoundTrip(WithOutliers(2, kind), TensorOf(kSequences, values));
    EXPECT_EQ(Those(met, IsOutlier), BF16Of(Those(values, IsOutlier)));
    const std::vector<float> alone =
        *RoundTrip(WithOutliers(0, kind), TensorOf(kSequences, zeroed));
    EXPECT_EQ(Those(met, is_other), Those(alone, is_other));
  }
}

TEST(OutliersTest, AreThoseOfTheFirstMessageThatIsKept) {
  const CodecSpec spec = WithOutliers(2);
  const Coded first = EncodeAfter(nullptr, spec, TensorOf(kSequences, ValuesWithOutliers()));
  EXPECT_EQ(first.payload->front(), 2);
  EXPECT_EQ(Channels(first), std::string("\2\0\0\0\5\0\0\0", 8));
  const std::vector<float> others = RandomValues(kSequences.elements(), 7);
  const Coded second = EncodeAfter(first.next, spec, TensorOf(kSequences, others));
  EXPECT_EQ(second.payload->front(), 1);
  EXPECT_EQ(second.next, first.next) << "nothing new to keep";
  EXPECT_EQ(second.payload->size() + 8, first.payload->size());
  const std::vector<float> met = *DecodeAfter(first.next, spec, *second.payload);
  EXPECT_EQ(Those(met, IsOutlier), BF16Of(Those(others, IsOutlier)));
}

TEST(OutliersTest, OfAMessageThatNobodyKeepsAreItsOwn) {
  const CodecSpec spec = WithOutliers(2);
  const Tensor x = TensorOf(kSequences, ValuesWithOutliers());
  const Coded alone = EncodeAfter(nullptr, spec, x, /*keeps=*/false);
  EXPECT_EQ(alone.payload->front(), 2);
  EXPECT_EQ(alone.next, nullptr);
  const auto carry = CarryOfChannels({0, 1}, spec);
  const Coded kept = EncodeAfter(carry, spec, x, /*keeps=*/false);
  EXPECT_EQ(kept.payload->front(), 1);
  EXPECT_EQ(kept.next, carry);
}

TEST(OutliersTest, AreNotChosenByAMessageOfFirstRowsAlone) {
  CodecSpec spec = WithOutliers(2);
  spec.first_position = FirstPosition::kExact;
  const Shape slice = kSequences.With(1, 1);
  const Tensor x = TensorOf(slice, RandomValues(slice.elements(), 3));
  const Coded first = EncodeAfter(nullptr, spec, x);
  EXPECT_EQ(first.next, nullptr);
  const Coded second = EncodeAfter(first.next, spec, TensorOf(kSequences, ValuesWithOutliers()));
  EXPECT_EQ(Channels(second), std::string("\2\0\0\0\5\0\0\0", 8));
}

TEST(OutliersTest, OfEqualChannelsAreTheLower) {
  const Tensor x = TensorOf({2, 4}, {1, -2, 2, 2, 1, 2, -2, 2});
  EXPECT_THAT(*LargestChannels(x, 2, /*first_rows=*/{}), ElementsAre(1, 2));
}

TEST(OutliersTest, ALargeValueOfTheFirstPositionMakesNoneWhereThatIsExact) {
  std::vector<float> values = ValuesWithOutliers();
  values[0] = 1e6;
  const Tensor x = TensorOf(kSequences, values);
  EXPECT_THAT(*LargestChannels(x, 2, /*first_rows=*/{}), ElementsAre(0, 2));
  EXPECT_THAT(*LargestChannels(x, 2, FirstRowsOf(kSequences, true)), ElementsAre(2, 5));
}

TEST(OutliersTest, LeaveAChannelToTheCodec) {
  const Tensor x = TensorOf({3, 2}, {1, 5, 2, -6, 4, 7});
  EXPECT_THAT(*RoundTrip(WithOutliers(9), x), ElementsAre(1, 5, 2, -6, 4, 7));
  EXPECT_THAT(*RoundTrip(WithOutliers(1), TensorOf({0, 2})), ElementsAre(0, 2));
}

TEST(OutliersTest, AboveBF16AreTheLargestNumberOfIt) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const Tensor x = TensorOf({2, 2}, {kMost, 1, -kMost, 1});
  EXPECT_THAT(*RoundTrip(WithOutliers(1), x), ElementsAre(kMaxBFloat, 1, -kMaxBFloat, 1));
}

TEST(OutliersTest, OfBF16TensorsAreExact) {
  const std::vector<float> values = ValuesWithOutliers();
  const Tensor x = BFloatTensorOf(kSequences, values);
  const std::vector<float> met = *RoundTrip(WithFirstPosition(WithOutliers(2)), x);
  const auto is_apart = [](int64_t i) { return IsFirst(i) || IsOutlier(i); };
  EXPECT_EQ(Those(met, is_apart), Those(FloatsOf(x), is_apart));
}

TEST(OutliersTest, KeepWhatTheCodecBehindThemLeaves) {
  CodecSpec spec = WithOutliers(2, CodecKind::kEcsq);
  spec.rotation = Rotation::kPrincipal;
  spec.rotation_every = 2;
  const Tensor x = TensorOf(kSequences, ValuesWithOutliers());
  Coded coded = EncodeAfter(nullptr, spec, x);
  EXPECT_EQ(DataOfPart(coded.next, "axes").size(), 8u * (4 + 8));
  const auto read =
      CodecOf(spec)->ReadCarry(coded.next->Parts(), kSequences.WithBatch(1), CpuDevice());
  ASSERT_TRUE(read.ok()) << read.status();
  const Coded again = EncodeAfter(*read, spec, x);
  coded = EncodeAfter(coded.next, spec, x);
  EXPECT_EQ(*again.payload, *coded.payload);
  EXPECT_EQ(DataOfPart(again.next, "axes_messages"), DataOfPart(coded.next, "axes_messages"));
  EXPECT_TRUE(DecodeAfter(coded.next, spec, *coded.payload).ok());
}

TEST(OutliersTest, ARateIsThatOfTheWholeMessage) {
  CodecSpec spec = WithFirstPosition(WithOutliers(2, CodecKind::kEcsq));
  spec.step = 1;
  spec.rate = 4;
  const Shape shape = {4, 64, 64};
  const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 3));
  const double bits = 8.0 * static_cast<double>(EncodeToBytes(spec, x)->size());
  EXPECT_NEAR(bits / static_cast<double>(shape.elements()), 4, 0.05);
}

TEST(FirstPositionTest, ArrivesAsItWas) {
  const std::vector<float> values = ValuesWithOutliers();
  const CodecSpec spec = WithFirstPosition(WithOutliers(2));
  const std::vector<float> met = *RoundTrip(spec, TensorOf(kSequences, values));
  EXPECT_EQ(Those(met, IsFirst), Those(values, IsFirst));
  const auto is_outlier = [](int64_t i) { return !IsFirst(i) && IsOutlier(i); };
  EXPECT_EQ(Those(met, is_outlier), BF16Of(Those(values, is_outlier)));
}

TEST(FirstPositionTest, OfALaterSliceIsLikeTheOthers) {
  const CodecSpec spec = WithFirstPosition(WithOutliers(0));
  const Tensor x = TensorOf(kSequences, ValuesWithOutliers());
  const auto later = *EncodeAfter(nullptr, spec, x, true, /*begins_sequences=*/false).payload;
  const std::vector<uint8_t> coded = *EncodeToBytes(WithOutliers(0), x);
  EXPECT_EQ(later.front(), 0);
  EXPECT_EQ(std::vector<uint8_t>(later.begin() + 1, later.end()), coded);
  EXPECT_EQ(*DecodeAfter(nullptr, spec, later), *RoundTrip(WithOutliers(0), x));
}

// Rows with which documents begin: positions 2 and 3 of the first sample, and 4 of the second.
const std::vector<uint32_t> kDocumentRows = {2, 3, 9};

TEST(FirstPositionTest, IsThatOfEachDocument) {
  const std::vector<float> values = ValuesWithOutliers();
  const CodecSpec spec = WithFirstPosition(WithOutliers(2));
  const auto begins = [](int64_t element) {
    return IsFirst(element) || absl::c_linear_search(kDocumentRows, element / kRowElements);
  };
  for (const Tensor& x : {TensorOf(kSequences, values), BFloatTensorOf(kSequences, values)}) {
    const auto payload = EncodeToBytes(spec, x, 1, nullptr, kDocumentRows);
    ASSERT_TRUE(payload.ok()) << payload.status();
    const auto y = DecodeFromBytes(spec, *payload, kSequences, x.dtype(), nullptr, kDocumentRows);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(Those(FloatsOf(*y), begins), Those(FloatsOf(x), begins));
    const auto are_outliers = [&](int64_t i) { return !begins(i) && IsOutlier(i); };
    EXPECT_EQ(Those(FloatsOf(*y), are_outliers), BF16Of(Those(FloatsOf(x), are_outliers)));
  }
}

TEST(FirstPositionTest, OfDocumentsThatBeginInALaterSlice) {
  const CodecSpec spec = WithFirstPosition(WithOutliers(0));
  const std::vector<float> values = ValuesWithOutliers();
  const Tensor x = TensorOf(kSequences, values);
  const auto codec = CodecOf(spec);
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), x.dtype()) +
                               MaxDocumentBytes(spec, x.shape(), 3));
  MessageContext context;
  context.document_rows = kDocumentRows;
  context.begins_sequences = false;
  payload.resize(*codec->Encode(x, context, absl::MakeSpan(payload)));
  EXPECT_EQ(payload.front(), 4 + 16);
  const auto y = DecodeFromBytes(spec, payload, kSequences, DType::kF32, nullptr, kDocumentRows);
  ASSERT_TRUE(y.ok()) << y.status();
  const auto begins = [](int64_t element) {
    return absl::c_linear_search(kDocumentRows, element / kRowElements);
  };
  EXPECT_EQ(Those(FloatsOf(*y), begins), Those(values, begins));
  EXPECT_NE(Those(FloatsOf(*y), IsFirst), Those(values, IsFirst));
  EXPECT_THAT(DecodeError(spec, payload), HasSubstr("form 20, want 0, or 4 or 8 more"));
}

TEST(FirstPositionTest, ASampleOfDocumentsOfOneTokenFits) {
  const CodecSpec spec = WithFirstPosition(WithOutliers(2));
  const std::vector<float> values = ValuesWithOutliers();
  std::vector<uint32_t> rows(kSequenceCount * kPositions);
  std::iota(rows.begin(), rows.end(), 0u);
  const auto payload = EncodeToBytes(spec, TensorOf(kSequences, values), 1, nullptr, rows);
  ASSERT_TRUE(payload.ok()) << payload.status();
  const auto y = DecodeFromBytes(spec, *payload, kSequences, DType::kF32, nullptr, rows);
  EXPECT_EQ(FloatsOf(*y), values);
}

TEST(FirstPositionTest, IsAllOfASequenceOfOne) {
  const std::vector<float> values = RandomValues(12, 4);
  EXPECT_EQ(*RoundTrip(WithFirstPosition(WithOutliers(1)), TensorOf({3, 1, 4}, values)), values);
}

TEST(FirstPositionTest, ImagesHaveAFirstRow) {
  const Shape images = {2, 3, 2, 4};
  const std::vector<float> values = RandomValues(images.elements(), 4);
  const std::vector<float> met =
      *RoundTrip(WithFirstPosition(WithOutliers(0)), TensorOf(images, values));
  for (const size_t first : {0, 24}) {
    for (size_t i = first; i < first + 4; ++i) EXPECT_EQ(met[i], values[i]);
  }
}

TEST(DividedTest, WithKeptOutliersIsCausal) {
  for (CodecSpec spec : {WithOutliers(2), WithFirstPosition(WithOutliers(2))}) {
    EXPECT_TRUE(IsCausal(spec, kRowElements)) << spec.ToString();
    spec.scope = Scope::kGroup;
    spec.group = kRowElements / 2;
    EXPECT_TRUE(IsCausal(spec, kRowElements)) << "rows keep their width";
  }
  const CodecSpec spec = WithFirstPosition(WithOutliers(2));
  const auto carry = CarryOfChannels({2, 5}, spec);
  const std::vector<float> values = ValuesWithOutliers();
  const std::vector<float> last(values.end() - kRowElements, values.end());
  const auto all = *EncodeAfter(carry, spec, TensorOf(kSequences, values)).payload;
  const auto alone =
      *EncodeAfter(carry, spec, TensorOf({1, 1, kRowElements}, last), true, /*begins=*/false)
           .payload;
  const std::vector<float> met = *DecodeAfter(carry, spec, all);
  EXPECT_EQ(std::vector<float>(met.end() - kRowElements, met.end()),
            *DecodeAfter(carry, spec, alone, {1, 1, kRowElements}));
}

TEST(DividedTest, NaNAndInfinityAreRefusedWhereverTheyAre) {
  const CodecSpec spec = WithFirstPosition(WithOutliers(2));
  for (const int64_t at : {int64_t{0}, kRowElements + 2, kRowElements + 3}) {
    for (const float bad : {NAN, -INFINITY}) {
      std::vector<float> values = ValuesWithOutliers();
      values[at] = bad;
      for (const auto& carry : {std::shared_ptr<const Carry>(), CarryOfChannels({2, 5}, spec)}) {
        const auto coded = EncodeAfter(carry, spec, TensorOf(kSequences, values));
        EXPECT_EQ(coded.payload.status().code(), absl::StatusCode::kOutOfRange);
        EXPECT_THAT(std::string(coded.payload.status().message()),
                    HasSubstr("element " + std::to_string(at)));
        EXPECT_EQ(coded.next, carry);
      }
    }
  }
}

TEST(DividedTest, ATruncatedPayloadIsRefusedAtEveryByte) {
  const CodecSpec spec = WithFirstPosition(WithOutliers(2));
  const Tensor x = TensorOf(kSequences, ValuesWithOutliers());
  std::vector<uint8_t> payload = *EncodeToBytes(spec, x);
  while (!payload.empty()) {
    payload.pop_back();
    EXPECT_EQ(DecodeFromBytes(spec, payload, kSequences).status().code(),
              absl::StatusCode::kInvalidArgument)
        << payload.size();
  }
}

TEST(DividedTest, PayloadsThatCannotBeAreRefused) {
  const CodecSpec spec = WithFirstPosition(WithOutliers(2));
  const Coded coded = EncodeAfter(nullptr, spec, TensorOf(kSequences, ValuesWithOutliers()));
  const std::vector<uint8_t>& good = *coded.payload;
  EXPECT_EQ(good[0], 2 + 4 * 1);
  const auto with = [&](size_t at, uint8_t byte) {
    std::vector<uint8_t> bad = good;
    bad[at] = byte;
    return bad;
  };
  EXPECT_THAT(DecodeError(spec, with(0, 0)), HasSubstr("form 0, want 1 or 2, or 4 or 8 more"));
  EXPECT_THAT(DecodeError(spec, with(0, 3)), HasSubstr("form 3"));
  EXPECT_THAT(DecodeError(spec, with(0, 14)), HasSubstr("form 14"));
  EXPECT_THAT(DecodeError(WithOutliers(2), good), HasSubstr("form 6, want 1 or 2"));
  EXPECT_THAT(DecodeError(spec, with(0, 1)), HasSubstr("which this end does not have"));
  EXPECT_THAT(DecodeError(spec, with(1, 5)), HasSubstr("channel 5, want ascending ones below 8"));
  EXPECT_THAT(DecodeError(spec, with(5, 8)), HasSubstr("channel 8, want ascending ones below 8"));
  std::vector<uint8_t> infinite = good;
  StoreAs(INFINITY, &infinite[9]);
  EXPECT_THAT(DecodeError(spec, infinite), HasSubstr("NaN or infinity in the payload"));
}

TEST(DividedTest, CarriesThatAreNotTheirsAreRefused) {
  const auto read = [](std::vector<uint32_t> channels, const std::string& name = "outliers",
                       const CodecSpec& spec = WithOutliers(2)) {
    const std::string_view data(reinterpret_cast<const char*>(channels.data()),
                                4 * channels.size());
    const auto count = static_cast<int64_t>(channels.size());
    return CodecOf(spec)
        ->ReadCarry({{name, "U32", {count}, data}}, kSequences.WithBatch(1), CpuDevice())
        .status();
  };
  EXPECT_TRUE(read({2, 5}).ok());
  EXPECT_FALSE(read({2}).ok());
  EXPECT_FALSE(read({5, 2}).ok());
  EXPECT_FALSE(read({5, 8}).ok());
  EXPECT_FALSE(read({2, 5}, "axes").ok());
  EXPECT_FALSE(read({2, 5}, "outliers", WithFirstPosition(WithOutliers(0))).ok());
}

}  // namespace
}  // namespace thinwire
