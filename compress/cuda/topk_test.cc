#include <gtest/gtest.h>

#include "compress/cuda/sparse_testing.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

CodecSpec TopK(double ratio, Scope scope = Scope::kTensor) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = ratio;
  spec.scope = scope;
  return spec;
}

TEST(CudaTopKTest, EveryShapeScopeAndRatioHasTheCpusBytes) {
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{2, 3}, Shape{7, 1, 5},
                             Shape{3, 17}, Shape{2, 3, 5, 33}, Shape{40, 64}, Shape{2, 1500}}) {
    const NamedValues normal{"normal", NormalValues(shape.elements())};
    for (Scope scope : kScopes) {
      for (double ratio : {0.001, 0.1, 0.5, 1.0}) {
        ExpectTwins(TopK(ratio, scope), shape, normal);
      }
    }
  }
}

TEST(CudaTopKTest, EveryContentHasTheCpusBytes) {
  const Shape shape = {3, 7, 11, 13};
  for (const NamedValues& c : FiniteCases(shape.elements())) {
    for (Scope scope : kScopes) {
      for (double ratio : {0.02, 0.3}) ExpectTwins(TopK(ratio, scope), shape, c);
    }
  }
}

// Tests scopes of many blocks each, in which elements of one block belong to two.
TEST(CudaTopKTest, LargeScopesHaveTheCpusBytes) {
  for (const Shape& shape : {Shape{1, 30011}, Shape{2, 8193}}) {
    for (const NamedValues& c : FiniteCases(shape.elements())) {
      ExpectTwins(TopK(0.1, Scope::kSample), shape, c);
    }
  }
  const NamedValues normal{"normal", NormalValues(40000)};
  for (double ratio : {0.0001, 0.01, 0.9, 1.0}) {
    ExpectTwins(TopK(ratio, Scope::kSample), {4, 10000}, normal);
  }
  ExpectTwins(TopK(0.1), {100003}, {"normal", NormalValues(100003)});
}

// Tests scopes a little shorter than a tile, enough of them for some tile to hold a whole one and
// more.
TEST(CudaTopKTest, ScopesOfAlmostATileHaveTheCpusBytes) {
  const Shape shape = {266, 8161};
  const NamedValues normal{"normal", NormalValues(shape.elements())};
  ExpectTwins(TopK(0.1, Scope::kSample), shape, normal);
}

// Tests a scope per block. The list holds all keys of the range, or does so only after some passes
// over equal magnitudes; words of the bitmap belong to two scopes.
TEST(CudaTopKTest, ManyLargeScopesHaveTheCpusBytes) {
  for (const Shape& shape : {Shape{5, 9001}, Shape{4, 17000}}) {
    for (const NamedValues& c : FiniteCases(shape.elements())) {
      ExpectTwins(TopK(0.3, Scope::kSample), shape, c);
    }
    CodecSpec exact = TopK(0.6, Scope::kSample);
    exact.pad = Pad::kExactK;
    for (const NamedValues& c : FiniteCases(shape.elements())) {
      if (c.name == "ReLU" || c.name == "ties") ExpectTwins(exact, shape, c);
    }
    const TwinSupport support(SomeOf(shape.elements(), 3));
    CodecSpec supported = TopK(0.05, Scope::kSample);
    supported.support = Support::kReceivedNonzero;
    ExpectTwins(supported, shape, {"normal", NormalValues(shape.elements())}, &support);
    for (const NamedValues& c : ExtremeCases(shape.elements())) {
      ExpectTwins(TopK(0.1, Scope::kSample), shape, c);
    }
  }
}

// Tests a scope long enough for indices of more than 21 bits.
TEST(CudaTopKTest, TiesOfAVeryLargeScopeGoToTheLowerIndex) {
  const Shape shape = {(int64_t{1} << 21) + 77};
  NamedValues c{"ties", std::vector<float>(shape.elements())};
  for (size_t i = 0; i < c.values.size(); ++i) c.values[i] = i % 5 == 3 ? -1.5f : 0;
  ExpectTwins(TopK(0.15), shape, c);
}

TEST(CudaTopKTest, LargeChannelsHaveTheCpusBytes) {
  for (const Shape& shape : {Shape{9000, 3}, Shape{130, 70, 5}, Shape{300, 40}}) {
    for (const NamedValues& c : FiniteCases(shape.elements())) {
      ExpectTwins(TopK(0.07, Scope::kChannel), shape, c);
    }
  }
}

CodecSpec TopKOfGroups(double ratio, uint32_t group) {
  CodecSpec spec = TopK(ratio, Scope::kGroup);
  spec.group = group;
  return spec;
}

// Tests a short last group under each selection: registers of a warp and of a block, a block per
// scope, and histograms of many blocks.
TEST(CudaTopKTest, AShortLastGroupHasTheCpusBytes) {
  for (const auto& [group, elements] :
       std::vector<std::pair<uint32_t, int64_t>>{{7, 500},
                                                 {64, 30},
                                                 {100, 1001},
                                                 {4096, 4096 * 3 + 70},
                                                 {9001, 9001 * 5 + 1},
                                                 {9001, 9001 * 4 + 9000},
                                                 {20000, 20017},
                                                 {20000, 30000}}) {
    for (const NamedValues& c : FiniteCases(elements)) {
      ExpectTwins(TopKOfGroups(1.0 / 64, group), {elements}, c);
    }
    CodecSpec exact = TopKOfGroups(0.3, group);
    exact.pad = Pad::kExactK;
    ExpectTwins(exact, {elements}, {"normal", NormalValues(elements)});
    CodecSpec supported = TopKOfGroups(0.1, group);
    supported.support = Support::kReceivedNonzero;
    const TwinSupport support(SomeOf(elements, 3));
    ExpectTwins(supported, {elements}, {"normal", NormalValues(elements)}, &support);
  }
}

TEST(CudaTopKTest, FewBitsOfGroupsHaveTheCpusBytes) {
  CodecSpec spec = TopKOfGroups(1.0 / 64, 4096);
  spec.values = Values::kMeans;
  spec.bits = 2;
  for (const NamedValues& c : FiniteCases(300001)) ExpectTwins(spec, {300001}, c);
}

TEST(CudaTopKTest, EveryKindOfValuesHasTheCpusBytes) {
  for (const Shape& shape : {Shape{0}, Shape{1}, Shape{5, 601}}) {
    for (const NamedValues& c : FiniteCases(shape.elements())) {
      for (const CodecSpec& spec : EveryKindOfValues(TopK(0.1, Scope::kSample))) {
        ExpectTwins(spec, shape, c);
      }
    }
  }
}

TEST(CudaTopKTest, ExactKSendsTheCpusZeros) {
  for (Scope scope : kScopes) {
    CodecSpec spec = TopK(0.4, scope);
    spec.pad = Pad::kExactK;
    for (const Shape& shape : {Shape{1}, Shape{5, 33}, Shape{9000, 2}}) {
      if (HasManyTinyScopes(shape, scope)) continue;
      for (const NamedValues& c : FiniteCases(shape.elements())) {
        if (c.name == "normal" || c.name == "zeros" || c.name == "ReLU" || c.name == "ties") {
          ExpectTwins(spec, shape, c);
        }
      }
    }
  }
}

// Tests scopes that keep all, zeros too, and end within a word.
TEST(CudaTopKTest, ExactKOfWholeScopesSendsTheCpusZeros) {
  CodecSpec spec = TopK(1, Scope::kTensor);
  spec.pad = Pad::kExactK;
  for (const NamedValues& c : FiniteCases(30011)) ExpectTwins(spec, {30011}, c);
  spec = TopKOfGroups(0, 9001);
  spec.k = 1;
  spec.pad = Pad::kExactK;
  NamedValues last{"a zero in the last group", NormalValues(18003)};
  last.values.back() = 0;
  ExpectTwins(spec, {18003}, last);
}

TEST(CudaTopKTest, KOfEitherKindIsTheCpus) {
  const Shape shape = {6, 500};
  const NamedValues normal{"normal", NormalValues(shape.elements())};
  CodecSpec paper1 = TopK(0.033, Scope::kSample);
  paper1.count = Count::kPaper1;
  ExpectTwins(paper1, shape, normal);
  for (uint64_t k : {1, 17, 500, 1000}) {
    CodecSpec spec = TopK(0, Scope::kSample);
    spec.k = k;
    ExpectTwins(spec, shape, normal);
  }
}

TEST(CudaTopKTest, EveryCodingOfIndicesIsTheCpus) {
  const Shape shape = {50000};
  const NamedValues normal{"normal", NormalValues(shape.elements())};
  NamedValues crowded{"crowded", std::vector<float>(shape.elements())};
  for (int i = 0; i < 4000; ++i) crowded.values[i < 2000 ? i : 46000 + i] = 1 + i % 3;
  const auto coding = [&](const NamedValues& c, uint64_t k) {
    CodecSpec spec = TopK(0);
    spec.k = k;
    return static_cast<IndexCoding>(ExpectTwins(spec, shape, c)[0]);
  };
  EXPECT_EQ(coding(normal, 1), IndexCoding::kPacked);
  EXPECT_EQ(coding(normal, 500), IndexCoding::kRice);
  EXPECT_EQ(coding(normal, 5000), IndexCoding::kRice);
  EXPECT_EQ(coding(normal, 25000), IndexCoding::kBitmap);
  EXPECT_EQ(coding(crowded, 4000), IndexCoding::kRice);
  EXPECT_EQ(coding(crowded, 100), IndexCoding::kRice);
}

TEST(CudaTopKTest, WithASupportIndicesAreRanks) {
  for (const Shape& shape : {Shape{1}, Shape{7, 11, 13}, Shape{9000, 3}, Shape{100, 3}}) {
    for (uint32_t one_in : {1, 2, 30}) {
      const TwinSupport support(SomeOf(shape.elements(), one_in));
      for (Scope scope : kScopes) {
        if (HasManyTinyScopes(shape, scope)) continue;
        for (double ratio : {0.01, 0.2}) {
          CodecSpec spec = TopK(ratio, scope);
          spec.support = Support::kReceivedNonzero;
          ExpectTwins(spec, shape, {"normal", NormalValues(shape.elements())}, &support);
        }
      }
    }
  }
  const TwinSupport none{std::vector<bool>(100)};
  CodecSpec spec = TopK(0.5);
  spec.support = Support::kReceivedNonzero;
  ExpectTwins(spec, {100}, {"normal", NormalValues(100)}, &none);
}

TEST(CudaTopKTest, NaNAndInfinityAreRefusedWhereTheyHaveSupport) {
  for (const Shape& shape : {Shape{1}, Shape{4, 100}, Shape{9000}, Shape{40, 7}}) {
    for (const NamedValues& c : ExtremeCases(shape.elements())) {
      for (Scope scope : kScopes) {
        if (shape.elements() > 1000 && scope != Scope::kTensor) continue;
        ExpectTwins(TopK(0.1, scope), shape, c);
        CodecSpec spec = TopK(0.1, scope);
        spec.support = Support::kReceivedNonzero;
        const TwinSupport support(SomeOf(shape.elements(), 2));
        ExpectTwins(spec, shape, c, &support);
      }
    }
  }
  const TwinSupport second({false, true});
  CodecSpec supported = TopK(1);
  supported.support = Support::kReceivedNonzero;
  ExpectTwins(supported, {2}, {"dropped NaN", {NAN, INFINITY}}, &second);
  CodecSpec uniform = TopK(0.5);
  uniform.values = Values::kUniform;
  for (const NamedValues& c : ExtremeCases(1000)) ExpectTwins(uniform, {1000}, c);
}

TEST(CudaTopKTest, TooLittleMemoryIsRefused) {
  const Tensor x = HostTensor({1000}, DType::kF32, NormalValues(1000));
  for (size_t capacity : {0, 7, 8, 100, 400, 450}) {
    ExpectSameEncoding(x, capacity, EncodeBy(TopK(0.1)));
  }
}

// Small payload of each coding, with values of each kind.
struct Small {
  Small(const CodecSpec& spec, const Shape& shape, IndexCoding want, uint32_t support_one_in = 0)
      : spec(spec), shape(shape) {
    NamedValues c{"normal", NormalValues(shape.elements())};
    if (support_one_in > 0) {
      support = std::make_unique<TwinSupport>(SomeOf(shape.elements(), support_one_in));
      this->spec.support = Support::kReceivedNonzero;
    }
    payload = ExpectTwins(this->spec, shape, c, support.get());
    EXPECT_EQ(static_cast<IndexCoding>(payload[0]), want);
  }
  CodecSpec spec;
  Shape shape;
  std::unique_ptr<TwinSupport> support;
  std::vector<uint8_t> payload;
};
std::vector<Small> SmallPayloads() {
  std::vector<Small> all;
  CodecSpec one = TopK(0, Scope::kSample);
  one.k = 1;
  const auto with = [](CodecSpec spec, Values values, uint32_t bits = 8) {
    spec.values = values;
    spec.bits = bits;
    spec.range = Range::kMaxAbs;
    return spec;
  };
  all.emplace_back(TopK(0.5, Scope::kChannel), Shape{5, 3}, IndexCoding::kBitmap);
  all.emplace_back(with(TopK(0.3, Scope::kSample), Values::kF16), Shape{3, 9},
                   IndexCoding::kBitmap);
  all.emplace_back(with(one, Values::kBF16), Shape{1, 300}, IndexCoding::kPacked);
  all.emplace_back(with(TopK(0.02, Scope::kSample), Values::kF16), Shape{5, 100},
                   IndexCoding::kRice);
  all.emplace_back(with(TopK(0.06), Values::kUniform, 3), Shape{200}, IndexCoding::kRice);
  all.emplace_back(with(TopK(0.05, Scope::kToken), Values::kBF16), Shape{2, 4, 60},
                   IndexCoding::kRice, 2);
  all.emplace_back(TopK(0.5), Shape{50}, IndexCoding::kBitmap, 3);
  all.emplace_back(TopKOfGroups(0.5, 20), Shape{50}, IndexCoding::kBitmap);
  all.emplace_back(with(TopKOfGroups(0.1, 30), Values::kMeans, 3), Shape{100}, IndexCoding::kRice);
  return all;
}

TEST(CudaTopKTest, CutPayloadsGetTheCpusVerdict) {
  for (const Small& s : SmallPayloads()) {
    SCOPED_TRACE(s.spec.ToString());
    ExpectSameVerdictsWhenCut(s.payload, s.shape, DType::kF32, DecodeBy(s.spec, s.support.get()));
  }
}

TEST(CudaTopKTest, DamagedPayloadsGetTheCpusVerdict) {
  for (const Small& s : SmallPayloads()) {
    SCOPED_TRACE(s.spec.ToString());
    ExpectSameVerdictsWhenDamaged(s.payload, s.shape, DType::kBF16,
                                  DecodeBy(s.spec, s.support.get()));
  }
}

}  // namespace
}  // namespace thinwire
