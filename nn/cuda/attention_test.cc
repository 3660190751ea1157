// In fp32, sums run in another order than on the CPU and use another exponential. In bf16 on tensor
// cores, the softmax's results and their gradients are rounded to bf16 before they are multiplied.
// So are rotated queries and keys and their gradients.

#include <gtest/gtest.h>

#include <memory>

#include "nn/cuda/testing.h"
#include "nn/rotary_testing.h"

namespace thinwire {
namespace {

struct Case {
  int64_t batch, positions, heads, kv_heads, head_size;
  float rope_theta = 0, dropout = 0;
  bool causal = true;
  std::vector<int32_t> lengths = {};  // of the samples; empty: all positions
  int64_t window = 0;
  // Positions at which documents begin in the first sample, and in the others with the sample's
  // number added; empty: one document.
  std::vector<int64_t> documents = {};

  AttentionSpec Spec(DType type) const {
    AttentionSpec spec = {heads, kv_heads, head_size, nullptr, dropout, type, causal, 0, window};
    SetRopeTheta(static_cast<double>(rope_theta), &spec);
    return spec;
  }
  Shape wide() const { return Shape({batch, positions, (heads + 2 * kv_heads) * head_size}); }
  Shape narrow() const { return Shape({batch, positions, heads * head_size}); }
  int64_t statistics() const { return batch * heads * positions; }
  // Returns the first keys of queries [first, first + positions).
  std::vector<int32_t> FirstKeys(int64_t first = 0) const {
    std::vector<int32_t> keys;
    for (int64_t at = 0; at < batch * positions; ++at) {
      const int64_t sample = at / positions, query = first + at % positions;
      int64_t start = 0;
      for (const int64_t document : documents) {
        if (document + sample <= query) start = document + sample;
      }
      keys.push_back(static_cast<int32_t>(start));
    }
    return keys;
  }
};

std::unique_ptr<Attention> New(Side* side, const AttentionSpec& spec) {
  Attention* attention = nullptr;
  EXPECT_TRUE((*side)->NewAttention(spec, &attention).ok());
  return std::unique_ptr<Attention>(attention);
}

// Returns whether the CPU computes in this type; bf16 needs AVX512-BF16.
bool CpuComputes(DType type) {
  Side cpu = CpuSide();
  return cpu->CheckComputeType(type).ok();
}

// Returns values for which the softmax is neither flat nor dominated by one result.
Floats Qkv(const Case& c) { return RandomFloats(c.wide().elements(), 1, 0.1f); }
Floats Dy(const Case& c) { return RandomFloats(c.narrow().elements(), 2); }

// Returns the first keys of a case's queries from `first` on, null without documents.
const int32_t* FirstKeys(Side* side, const Case& c, int64_t first = 0) {
  if (c.documents.empty()) return nullptr;
  return static_cast<const int32_t*>(side->Ints({c.batch, c.positions}, c.FirstKeys(first)).data);
}

class AttentionTest : public testing::TestWithParam<std::tuple<DType, Case>> {
 protected:
  void SetUp() override {
    if (!CpuComputes(type())) GTEST_SKIP() << "no AVX512-BF16 here";
  }
  DType type() const { return std::get<0>(GetParam()); }
  // Returns what both passes write.
  Outputs Passes(Side* side) const {
    const Case& c = std::get<1>(GetParam());
    const auto attention = New(side, c.Spec(type()));
    AttentionForward a;
    a.qkv = side->Of(type(), c.wide(), Qkv(c));
    a.y = side->Unwritten(type(), c.narrow());
    a.log_sum_exp = side->Unwritten(c.statistics());
    a.dropout_key = 11;
    a.first_sample = 3;
    if (!c.lengths.empty()) {
      const Shape batch({c.batch});
      a.lengths = static_cast<const int32_t*>(side->Ints(batch, c.lengths).data);
    }
    a.first_key = FirstKeys(side, c);
    EXPECT_TRUE(attention->Forward(a).ok());
    AttentionBackward b;
    b.qkv = a.qkv;
    b.y = a.y;
    b.dy = side->Of(type(), c.narrow(), Dy(c));
    b.dqkv = side->Unwritten(type(), c.wide());
    b.log_sum_exp = a.log_sum_exp;
    b.dropout_key = a.dropout_key;
    b.first_sample = a.first_sample;
    b.lengths = a.lengths;
    b.first_key = a.first_key;
    EXPECT_TRUE(attention->Backward(b).ok());
    return {{"y", side->Read(a.y)},
            {"log_sum_exp", side->Read(a.log_sum_exp, c.statistics())},
            {"dqkv", side->Read(b.dqkv)}};
  }
};

TEST_P(AttentionTest, BothPassesAreTheCpus) {
  const Tolerance each = type() == DType::kF32 ? Tolerance{1e-5, 1e-5} : Tolerance{0x1p-6, 0x1p-5};
  ExpectTwins(each, [&](Side* side) { return Passes(side); });
}

// Sizes around the borders of blocks; heads that tensor cores take, and others.
const auto kCases = testing::Values(
    Case{1, 1, 1, 1, 1}, Case{2, 20, 1, 1, 3, 0, 0.2f}, Case{2, 130, 1, 1, 32},
    Case{1, 100, 4, 2, 64, 10000, 0.2f}, Case{1, 64, 1, 1, 64}, Case{1, 65, 2, 1, 80, 100},
    Case{1, 70, 2, 1, 128, 0, 0.1f},
    // Without causality, with lengths at the borders of blocks and far from them.
    Case{2, 130, 2, 1, 32, 0, 0, false}, Case{1, 65, 1, 1, 24, 100, 0.2f, false},
    Case{4, 130, 2, 2, 64, 0, 0, false, {1, 64, 65, 130}},
    Case{3, 70, 2, 1, 24, 0, 0.2f, false, {70, 3, 33}},
    Case{2, 100, 1, 1, 128, 0, 0.1f, false, {31, 97}},
    // Windows and documents within blocks, at their borders and over several.
    Case{2, 200, 2, 1, 32, 0, 0, true, {}, 8}, Case{1, 200, 2, 1, 64, 0, 0.1f, true, {}, 64},
    Case{1, 150, 1, 1, 24, 100, 0, true, {}, 100}, Case{1, 70, 1, 1, 128, 0, 0, true, {}, 500},
    Case{2, 200, 2, 2, 32, 0, 0.1f, true, {}, 0, {1, 2, 40, 63, 130, 198}},
    Case{2, 150, 2, 1, 128, 0, 0, true, {}, 40, {64, 100}},
    Case{3, 130, 2, 1, 24, 100, 0.2f, true, {}, 0, {33, 62, 127}});

INSTANTIATE_TEST_SUITE_P(Cases, AttentionTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16), kCases));

using NarrowAttentionTest = AttentionTest;

// What is left out or counted twice shows in the norm of all values, in which roundings do not add
// up.
TEST_P(NarrowAttentionTest, BothPassesAreTheCpusInTheNorm) {
  Side cpu = CpuSide(), device = DeviceSide();
  const Outputs want = Passes(&cpu), got = Passes(&device);
  for (size_t k = 0; k < want.size(); ++k) {
    double distance = 0, norm = 0;
    for (size_t i = 0; i < want[k].second.size(); ++i) {
      const double value = want[k].second[i], difference = got[k].second[i] - value;
      distance += difference * difference;
      norm += value * value;
    }
    EXPECT_LE(std::sqrt(distance / norm), 0x1p-7) << want[k].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NarrowAttentionTest,
                         testing::Combine(testing::Values(DType::kBF16), kCases));

// Returns what the passes write for sequences in slices that end within blocks and at their
// borders.
Outputs SlicedPasses(Side* side, const Case& c, DType type) {
  const auto attention = New(side, c.Spec(type));
  const Shape cache({c.batch, 2, c.positions + 10, c.kv_heads, c.head_size});
  AttentionCached forward;
  forward.cache = side->Unwritten(type, cache);
  float* const dcache = side->Of(Floats(cache.elements()));
  Outputs outputs;
  std::vector<AttentionBackward> passes;
  for (const int64_t count : {61, 3, 1, 80, 5}) {
    Case slice = c;
    slice.positions = count;
    forward.qkv = side->Of(type, slice.wide(), Qkv(slice));
    forward.y = side->Unwritten(type, slice.narrow());
    forward.log_sum_exp = side->Unwritten(slice.statistics());
    forward.first_key = FirstKeys(side, slice, forward.first_position);
    EXPECT_TRUE(attention->Continue(forward).ok());
    outputs.push_back({"y", side->Read(forward.y)});
    outputs.push_back({"log_sum_exp", side->Read(forward.log_sum_exp, slice.statistics())});
    AttentionBackward& pass = passes.emplace_back();
    pass.qkv = forward.qkv;
    pass.y = forward.y;
    pass.dy = side->Of(type, slice.narrow(), Dy(slice));
    pass.dqkv = side->Unwritten(type, slice.wide());
    pass.log_sum_exp = forward.log_sum_exp;
    pass.cache = forward.cache;
    pass.dcache = dcache;
    pass.first_position = forward.first_position;
    pass.first_key = forward.first_key;
    forward.first_position += count;
  }
  for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass) {
    EXPECT_TRUE(attention->Backward(*pass).ok());
    outputs.push_back({"dqkv", side->Read(pass->dqkv)});
  }
  outputs.push_back({"dcache", side->Read(dcache, cache.elements())});
  return outputs;
}

// Runs sequences through a cache: a prompt, then positions one by one.
TEST(AttentionCacheTest, PositionsWithACacheAreTheCpus) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    if (!CpuComputes(type)) continue;
    for (const Case& c : {Case{2, 75, 2, 2, 32}, Case{1, 75, 4, 2, 24, 100},
                          Case{2, 75, 2, 2, 32, 0, 0, true, {}, 6, {3, 71}},
                          Case{1, 75, 4, 2, 24, 100, 0, true, {}, 20}}) {
      const Tolerance tolerance =
          type == DType::kF32 ? Tolerance{2e-5, 2e-5} : Tolerance{0x1p-6, 0x1p-6};
      ExpectTwins(tolerance, [&](Side* side) -> Outputs {
        const auto attention = New(side, c.Spec(type));
        AttentionCached a;
        const Shape cache({c.batch, 2, 80, c.kv_heads, c.head_size});
        a.cache = side->Unwritten(type, cache);
        Outputs outputs;
        for (const int64_t count : {70, 1, 1, 3}) {
          Case part = c;
          part.positions = count;
          a.qkv = side->Of(type, part.wide(), Qkv(part));
          a.y = side->Unwritten(type, part.narrow());
          a.first_key = FirstKeys(side, part, a.first_position);
          EXPECT_TRUE(attention->Continue(a).ok());
          outputs.push_back({"y", side->Read(a.y)});
          a.first_position += count;
        }
        outputs.push_back({"cache", side->Read(a.cache)});
        return outputs;
      });
    }
  }
}

// Trains a sequence in slices: forward in order, backward from the last slice.
TEST(AttentionCacheTest, TrainingBySlicesIsTheCpus) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    if (!CpuComputes(type)) continue;
    const Tolerance tolerance =
        type == DType::kF32 ? Tolerance{2e-5, 2e-5} : Tolerance{0x1p-6, 0x1p-5};
    for (const Case& c :
         {Case{2, 150, 2, 2, 32}, Case{1, 150, 4, 2, 24, 100}, Case{1, 150, 2, 1, 64, 10000},
          Case{1, 150, 1, 1, 80}, Case{2, 150, 2, 2, 32, 0, 0, true, {}, 30, {3, 62, 100}},
          Case{2, 150, 2, 1, 24, 100, 0, true, {}, 0, {60, 64, 66}}}) {
      ExpectTwins(tolerance, [&](Side* side) { return SlicedPasses(side, c, type); });
    }
  }
}

// Returns arguments that are refused by their sizes alone; the cache has 8 positions.
AttentionCached WithoutMemory(const Case& c) {
  AttentionCached a;
  a.qkv.rank = 3;
  a.cache.rank = 5;
  const Shape qkv = c.wide(), cache({c.batch, 2, 8, c.kv_heads, c.head_size});
  std::copy(qkv.begin(), qkv.end(), a.qkv.dims);
  std::copy(cache.begin(), cache.end(), a.cache.dims);
  return a;
}

TEST(AttentionCacheTest, RefusesDropoutInTrainingInTheCpusWords) {
  Side cpu = CpuSide(), device = DeviceSide();
  const Case c{1, 3, 1, 1, 4, 0, 0.5f};
  AttentionCached a = WithoutMemory(c);
  float log_sum_exp;
  a.log_sum_exp = &log_sum_exp;
  const absl::Status status = ToStatus(New(&device, c.Spec(DType::kF32))->Continue(a));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status, ToStatus(New(&cpu, c.Spec(DType::kF32))->Continue(a)));
}

TEST(AttentionCacheTest, RefusesOneThatIsNotCausalInTheCpusWords) {
  Side cpu = CpuSide(), device = DeviceSide();
  const Case c{1, 3, 1, 1, 4, 0, 0, false};
  const AttentionCached a = WithoutMemory(c);
  const absl::Status status = ToStatus(New(&device, c.Spec(DType::kF32))->Continue(a));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status, ToStatus(New(&cpu, c.Spec(DType::kF32))->Continue(a)));
}

TEST(AttentionLimitsTest, RefusesFirstKeysWithoutCausalityInTheCpusWords) {
  Side cpu = CpuSide(), device = DeviceSide();
  const Case c{1, 3, 1, 1, 4, 0, 0, false};
  AttentionForward a;
  a.qkv = WithoutMemory(c).qkv;
  const int32_t first = 0;
  a.first_key = &first;
  const absl::Status status = ToStatus(New(&device, c.Spec(DType::kF32))->Forward(a));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status, ToStatus(New(&cpu, c.Spec(DType::kF32))->Forward(a)));
}

TEST(AttentionCacheTest, RefusesPositionsBeyondItInTheCpusWords) {
  Side cpu = CpuSide(), device = DeviceSide();
  const Case c{1, 3, 1, 1, 4};
  AttentionCached a = WithoutMemory(c);
  a.first_position = 6;
  const absl::Status status = ToStatus(New(&device, c.Spec(DType::kF32))->Continue(a));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status, ToStatus(New(&cpu, c.Spec(DType::kF32))->Continue(a)));
}

TEST(AttentionEvaluationTest, DropsNothing) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    Case c{1, 40, 2, 2, 32};
    Side side = DeviceSide();
    AttentionForward a;
    a.qkv = side.Of(type, c.wide(), Qkv(c));
    a.y = side.Unwritten(type, c.narrow());
    ASSERT_TRUE(New(&side, c.Spec(type))->Forward(a).ok());
    const Floats plain = side.Read(a.y);
    c.dropout = 0.5f;
    ASSERT_TRUE(New(&side, c.Spec(type))->Forward(a).ok());
    EXPECT_EQ(side.Read(a.y), plain);
  }
}

TEST(AttentionNumericsTest, LargeScoresDoNotOverflow) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const Case c{1, 80, 1, 1, 32};
    Side side = DeviceSide();
    AttentionForward a;
    a.qkv = side.Of(type, c.wide(), RandomFloats(c.wide().elements(), 1, 0, 1000));
    a.y = side.Unwritten(type, c.narrow());
    ASSERT_TRUE(New(&side, c.Spec(type))->Forward(a).ok());
    for (const float v : side.Read(a.y)) ASSERT_TRUE(std::isfinite(v));
  }
}

TEST(AttentionLimitsTest, NoSamplesAreNoError) {
  const Case c{0, 5, 1, 1, 4, 100};
  Side side = DeviceSide();
  const auto attention = New(&side, c.Spec(DType::kF32));
  const TensorView qkv = side.Unwritten(DType::kF32, c.wide()),
                   y = side.Unwritten(DType::kF32, c.narrow());
  EXPECT_TRUE(attention->Forward({qkv, y, nullptr, 0, 0}).ok());
  EXPECT_TRUE(attention->Backward({qkv, y, y, qkv, nullptr, 0, 0}).ok());
}

TEST(AttentionLimitsTest, RefusesDropoutOverTooManyScoresInTheCpusWords) {
  const Case c{1, 1 << 14, 16, 16, 4, 0, 0.1f};
  Side cpu = CpuSide(), device = DeviceSide();
  AttentionForward a;
  a.qkv.rank = a.y.rank = 3;
  for (int i = 0; i < 3; ++i) a.qkv.dims[i] = c.wide()[i];
  const absl::Status status = ToStatus(New(&device, c.Spec(DType::kF32))->Forward(a));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status, ToStatus(New(&cpu, c.Spec(DType::kF32))->Forward(a)));
}

}  // namespace
}  // namespace thinwire
