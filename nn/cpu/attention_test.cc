#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "nn/attention_checks.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/tensors_testing.h"
#include "nn/dropout_mask.h"
#include "nn/rotary_testing.h"

namespace thinwire::cpu {
namespace {

using Doubles = std::vector<double>;

AttentionSpec Spec(int64_t heads, int64_t kv_heads, int64_t head_size) {
  AttentionSpec spec;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.head_size = head_size;
  return spec;
}

struct Sizes {
  int64_t batch, positions;
};

int64_t Row(const AttentionSpec& spec) { return (spec.heads + 2 * spec.kv_heads) * spec.head_size; }

Floats RandomQkv(const AttentionSpec& spec, const Sizes& sizes, float limit = 2) {
  return RandomFloats(sizes.batch * sizes.positions * Row(spec), 1, limit);
}
Floats RandomDy(const AttentionSpec& spec, const Sizes& sizes) {
  return RandomFloats(sizes.batch * sizes.positions * spec.heads * spec.head_size, 2);
}

// Limits of what queries see: lengths of the samples and first keys of their positions, or neither.
struct Limits {
  std::vector<int32_t> lengths = {}, first_key = {};
};

// Returns the first keys of samples of `positions` whose documents begin at these ones.
Limits DocumentsAt(const std::vector<std::vector<int64_t>>& samples, int64_t positions) {
  Limits limits;
  for (const std::vector<int64_t>& starts : samples) {
    for (int64_t t = 0, start = 0; t < positions; ++t) {
      if (std::find(starts.begin(), starts.end(), t) != starts.end()) start = t;
      limits.first_key.push_back(static_cast<int32_t>(start));
    }
  }
  return limits;
}

// Runs both passes over a batch in parts of `part` samples.
struct Pass {
  Floats y, log_sum_exp, dqkv;

  Pass(int threads, const AttentionSpec& spec, const Sizes& sizes, int64_t part, const Floats& qkv,
       const Floats& dy, const Limits& limits = {}) {
    const auto attention = NewAttention(threads, spec);
    const int64_t in = sizes.positions * Row(spec);
    const int64_t out = sizes.positions * spec.heads * spec.head_size;
    for (int64_t first = 0; first < sizes.batch; first += part) {
      const Shape wide({part, sizes.positions, Row(spec)});
      const Shape narrow({part, sizes.positions, spec.heads * spec.head_size});
      TestTensor x(spec.compute, wide, Floats(&qkv[first * in], &qkv[(first + part) * in]));
      TestTensor gradient(spec.compute, narrow,
                          Floats(&dy[first * out], &dy[(first + part) * out]));
      TestTensor result(spec.compute, narrow), dx(spec.compute, wide);
      Floats lse(part * spec.heads * sizes.positions, 99.0f);
      const auto& [lengths, first_key] = limits;
      const int32_t* const of_part = lengths.empty() ? nullptr : &lengths[first];
      const int32_t* const keys = first_key.empty() ? nullptr : &first_key[first * sizes.positions];
      EXPECT_TRUE(
          attention
              ->Forward({x.view(), result.view(), lse.data(), kDropoutKey, first, of_part, keys})
              .ok());
      AttentionBackward backward{x.view(),    result.view(), gradient.view(), dx.view(), lse.data(),
                                 kDropoutKey, first};
      backward.lengths = of_part;
      backward.first_key = keys;
      EXPECT_TRUE(attention->Backward(backward).ok());
      const auto append = [](const Floats& from, Floats* to) {
        to->insert(to->end(), from.begin(), from.end());
      };
      append(result.Read(), &y);
      append(lse, &log_sum_exp);
      append(dx.Read(), &dqkv);
    }
  }
  Pass(const AttentionSpec& spec, const Sizes& sizes)
      : Pass(2, spec, sizes, sizes.batch, RandomQkv(spec, sizes), RandomDy(spec, sizes)) {}

  static constexpr uint64_t kDropoutKey = 11;
};

// Computes the header's formula position by position in fp64, and the textbook's gradient.
class Reference {
 public:
  Doubles y, log_sum_exp, dqkv;

  Reference(const AttentionSpec& spec, const Sizes& sizes, const Floats& qkv, const Floats& dy,
            const Limits& limits = {})
      : y(dy.size()),
        log_sum_exp(sizes.batch * spec.heads * sizes.positions),
        dqkv(qkv.size()),
        spec_(spec),
        positions_(sizes.positions) {
    for (int64_t sample = 0; sample < sizes.batch; ++sample) {
      const Doubles turned = Turned(Doubles(qkv.begin() + sample * positions_ * Row(spec),
                                            qkv.begin() + (sample + 1) * positions_ * Row(spec)),
                                    1);
      Doubles gradient(turned.size());
      for (int64_t head = 0; head < spec.heads; ++head) {
        for (int64_t t = 0; t < positions_; ++t) {
          const int64_t length = limits.lengths.empty() ? positions_ : limits.lengths[sample];
          int64_t first = spec.window > 0 ? std::max<int64_t>(0, t - spec.window + 1) : 0;
          if (!limits.first_key.empty()) {
            first = std::max<int64_t>(first, limits.first_key[sample * positions_ + t]);
          }
          Query(turned, dy, sample, head, t, {first, spec.causal ? t + 1 : length}, &gradient);
        }
      }
      gradient = Turned(gradient, -1);
      std::copy(gradient.begin(), gradient.end(), dqkv.begin() + sample * gradient.size());
    }
  }

 private:
  // Returns queries and keys rotated by their positions, forward or back.
  Doubles Turned(Doubles x, double direction) const {
    if (spec_.frequencies == nullptr) return x;
    const int64_t half = spec_.head_size / 2;
    for (int64_t t = 0; t < positions_; ++t) {
      for (int64_t head = 0; head < spec_.heads + spec_.kv_heads; ++head) {
        for (int64_t i = 0; i < half; ++i) {
          const double angle = direction * static_cast<double>(t) * spec_.frequencies[i];
          double& a = x[t * Row(spec_) + head * spec_.head_size + i];
          double& b = (&a)[half];
          const double turned = a * std::cos(angle) - b * std::sin(angle);
          b = b * std::cos(angle) + a * std::sin(angle);
          a = turned;
        }
      }
    }
    return x;
  }

  // Keys [first, last) that a query sees.
  struct Seen {
    int64_t first, last;
  };

  void Query(const Doubles& x, const Floats& dy, int64_t sample, int64_t head, int64_t t,
             const Seen& seen, Doubles* gradient) {
    const int64_t size = spec_.head_size, group = spec_.heads / spec_.kv_heads;
    const int64_t key_at = (spec_.heads + head / group) * size;
    const int64_t value_at = key_at + spec_.kv_heads * size;
    const auto row = [&](int64_t s, int64_t at) { return s * Row(spec_) + at; };
    const DropoutMask mask(Pass::kDropoutKey, sample, spec_.dropout);
    Doubles p(seen.last);
    double sum = 0;
    for (int64_t s = seen.first; s < seen.last; ++s) {
      for (int64_t j = 0; j < size; ++j) {
        p[s] += x[row(t, head * size) + j] * x[row(s, key_at) + j] / std::sqrt(size);
      }
      sum += std::exp(p[s]);
    }
    log_sum_exp[(sample * spec_.heads + head) * positions_ + t] = std::log(sum);
    const int64_t out = ((sample * positions_ + t) * spec_.heads + head) * size;
    Doubles kept(seen.last), dp(seen.last);
    double mean = 0;
    for (int64_t s = seen.first; s < seen.last; ++s) {
      p[s] = std::exp(p[s]) / sum;
      const auto element = static_cast<uint32_t>((head * positions_ + t) * positions_ + s);
      kept[s] = spec_.dropout > 0 && !mask.Keeps(element) ? 0 : 1 / (1 - double{spec_.dropout});
      for (int64_t j = 0; j < size; ++j) {
        y[out + j] += kept[s] * p[s] * x[row(s, value_at) + j];
        dp[s] += kept[s] * dy[out + j] * x[row(s, value_at) + j];
        (*gradient)[row(s, value_at) + j] += kept[s] * p[s] * dy[out + j];
      }
      mean += p[s] * dp[s];
    }
    for (int64_t s = seen.first; s < seen.last; ++s) {
      const double ds = p[s] * (dp[s] - mean) / std::sqrt(size);
      for (int64_t j = 0; j < size; ++j) {
        (*gradient)[row(t, head * size) + j] += ds * x[row(s, key_at) + j];
        (*gradient)[row(s, key_at) + j] += ds * x[row(t, head * size) + j];
      }
    }
  }

  const AttentionSpec spec_;
  const int64_t positions_;
};

void ExpectNear(const Floats& got, const Doubles& want, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << " " << i;
  }
}

void ExpectIsTheFormula(const AttentionSpec& spec, const Sizes& sizes, const Limits& limits = {}) {
  SCOPED_TRACE(std::to_string(sizes.positions) + " positions of " + std::to_string(spec.head_size));
  const bool wide = spec.compute == DType::kF32;
  const Shape shape({sizes.batch, sizes.positions, Row(spec)});
  const Floats qkv = TestTensor(spec.compute, shape, RandomQkv(spec, sizes)).Read();
  const Floats dy = TestTensor(spec.compute, {static_cast<int64_t>(RandomDy(spec, sizes).size())},
                               RandomDy(spec, sizes))
                        .Read();
  const Pass pass(2, spec, sizes, sizes.batch, qkv, dy, limits);
  const Reference reference(spec, sizes, qkv, dy, limits);
  ExpectNear(pass.y, reference.y, wide ? 4e-6 : 0x1p-7, "y");
  ExpectNear(pass.log_sum_exp, reference.log_sum_exp, 4e-6, "log_sum_exp");
  // y, from which the gradient's mean is computed, is rounded, too.
  ExpectNear(pass.dqkv, reference.dqkv, wide ? 2e-5 : 0x1p-6, "dqkv");
}

// Takes sizes around the borders of blocks and vectors, and far beyond them.
TEST(AttentionTest, IsWhatTheFormulaSays) {
  for (int64_t positions : {1, 2, 15, 16, 17, 33, 63, 64, 65, 130, 257}) {
    ExpectIsTheFormula(Spec(2, 2, 32), {2, positions});
  }
  for (int64_t head_size : {1, 3, 16, 24, 64, 80, 128}) {
    ExpectIsTheFormula(Spec(2, 2, head_size), {1, 70});
  }
}

AttentionSpec WithoutCausality(AttentionSpec spec) {
  spec.causal = false;
  return spec;
}

TEST(AttentionTest, WithoutCausalityEveryPositionSeesTheWholeSample) {
  for (int64_t positions : {1, 2, 15, 16, 17, 33, 63, 64, 65, 130, 257}) {
    ExpectIsTheFormula(WithoutCausality(Spec(2, 2, 32)), {2, positions});
  }
  AttentionSpec rotary = WithoutCausality(Spec(4, 2, 24));
  SetRopeTheta(10000, &rotary);
  rotary.dropout = 0.2f;
  ExpectIsTheFormula(rotary, {2, 70});
  AttentionSpec narrow = WithoutCausality(Spec(2, 2, 32));
  narrow.compute = DType::kBF16;
  ExpectIsTheFormula(narrow, {2, 100});
}

// Takes every length of short samples, and those around the borders of blocks of long ones.
TEST(AttentionTest, KeysBehindASamplesLengthAreNotSeen) {
  const AttentionSpec spec = WithoutCausality(Spec(2, 1, 16));
  std::vector<int32_t> lengths;
  for (int32_t length = 1; length <= 21; ++length) lengths.push_back(length);
  ExpectIsTheFormula(spec, {21, 21}, {lengths});
  ExpectIsTheFormula(spec, {7, 130}, {{1, 15, 63, 64, 65, 129, 130}});
  AttentionSpec dropping = spec;
  dropping.dropout = 0.3f;
  ExpectIsTheFormula(dropping, {3, 70}, {{70, 1, 33}});
  AttentionSpec narrow = spec;
  narrow.compute = DType::kBF16;
  ExpectIsTheFormula(narrow, {2, 70}, {{65, 20}});
}

TEST(AttentionTest, NothingSeenDependsOnWhatPaddingHolds) {
  const AttentionSpec spec = WithoutCausality(Spec(2, 2, 32));
  const Sizes sizes{1, 90};
  Floats qkv = RandomQkv(spec, sizes), dy = RandomDy(spec, sizes);
  const int64_t out = spec.heads * spec.head_size;
  std::fill(dy.begin() + 70 * out, dy.end(), 0.0f);  // nothing reads padding's results
  const Pass before(1, spec, sizes, 1, qkv, dy, {{70}});
  for (size_t i = 70 * Row(spec); i < qkv.size(); ++i) qkv[i] = 7;
  const Pass after(1, spec, sizes, 1, qkv, dy, {{70}});
  EXPECT_TRUE(std::equal(before.y.begin(), before.y.begin() + 70 * out, after.y.begin()));
  EXPECT_EQ(before.dqkv, after.dqkv);
  for (const float v : after.y) EXPECT_TRUE(std::isfinite(v));
}

TEST(AttentionTest, RefusesACacheWithoutCausalityAndLengthsWithIt) {
  const AttentionSpec spec = WithoutCausality(Spec(1, 1, 4));
  const Error cached = NewAttention(1, spec)->Continue(
      {View(DType::kF32, {1, 1, 12}, nullptr), View(DType::kF32, {1, 1, 4}, nullptr),
       View(DType::kF32, {1, 2, 8, 1, 4}, nullptr), 0});
  EXPECT_EQ(ToStatus(cached).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(cached.message), "attention: causal is false with a cache, want true");
  const int32_t length = 1;
  const Error limited =
      NewAttention(1, Spec(1, 1, 4))
          ->Forward({View(DType::kF32, {1, 1, 12}, nullptr), View(DType::kF32, {1, 1, 4}, nullptr),
                     nullptr, 0, 0, &length});
  AttentionBackward backward;
  backward.qkv = View(DType::kF32, {1, 1, 12}, nullptr);
  backward.lengths = &length;
  EXPECT_EQ(ToStatus(NewAttention(1, Spec(1, 1, 4))->Backward(backward)).message(),
            std::string("attention: lengths of samples with causal true, want false"));
  EXPECT_EQ(ToStatus(limited).code(), absl::StatusCode::kInvalidArgument);
}

AttentionSpec WithWindow(AttentionSpec spec, int64_t window) {
  spec.window = window;
  return spec;
}

// Takes windows around the borders of blocks and vectors, and beyond the sample.
TEST(AttentionTest, NoQueryLooksBackFurtherThanItsWindow) {
  for (int64_t window : {1, 2, 15, 16, 17, 63, 64, 65, 100, 200, 500}) {
    SCOPED_TRACE(window);
    ExpectIsTheFormula(WithWindow(Spec(2, 1, 16), window), {2, 200});
  }
  AttentionSpec rotary = WithWindow(Spec(4, 2, 24), 20);
  SetRopeTheta(10000, &rotary);
  rotary.dropout = 0.2f;
  ExpectIsTheFormula(rotary, {2, 150});
  AttentionSpec narrow = WithWindow(Spec(2, 2, 32), 70);
  narrow.compute = DType::kBF16;
  ExpectIsTheFormula(narrow, {2, 150});
}

TEST(AttentionTest, QueriesSeeNoKeyBeforeTheirFirst) {
  const Limits documents = DocumentsAt({{0, 1, 2, 40, 64, 150}, {5, 63, 65, 128, 199}, {}}, 200);
  ExpectIsTheFormula(Spec(2, 1, 16), {3, 200}, documents);
  ExpectIsTheFormula(WithWindow(Spec(2, 1, 16), 30), {3, 200}, documents);
  AttentionSpec dropping = Spec(4, 2, 24);
  SetRopeTheta(10000, &dropping);
  dropping.dropout = 0.3f;
  ExpectIsTheFormula(dropping, {3, 200}, documents);
  AttentionSpec narrow = Spec(2, 2, 32);
  narrow.compute = DType::kBF16;
  ExpectIsTheFormula(narrow, {3, 200}, documents);
}

TEST(AttentionTest, FirstKeysOfZeroAndWideWindowsChangeNoBit) {
  AttentionSpec spec = Spec(2, 2, 32);
  spec.dropout = 0.2f;
  const Sizes sizes{2, 130};
  const Floats qkv = RandomQkv(spec, sizes), dy = RandomDy(spec, sizes);
  const Pass plain(2, spec, sizes, 2, qkv, dy);
  for (const Pass& other :
       {Pass(2, spec, sizes, 2, qkv, dy, DocumentsAt({{}, {}}, sizes.positions)),
        Pass(2, WithWindow(spec, sizes.positions), sizes, 2, qkv, dy)}) {
    EXPECT_EQ(other.y, plain.y);
    EXPECT_EQ(other.log_sum_exp, plain.log_sum_exp);
    EXPECT_EQ(other.dqkv, plain.dqkv);
  }
}

TEST(AttentionTest, ADocumentDoesNotDependOnThoseBeforeIt) {
  const AttentionSpec spec = Spec(2, 2, 32);
  const Sizes sizes{1, 150};
  Floats qkv = RandomQkv(spec, sizes);
  const Floats dy = RandomDy(spec, sizes);
  const Limits documents = DocumentsAt({{70}}, sizes.positions);
  const Pass before(1, spec, sizes, 1, qkv, dy, documents);
  std::fill(qkv.begin(), qkv.begin() + 70 * Row(spec), 3.0f);
  const Pass after(1, spec, sizes, 1, qkv, dy, documents);
  const int64_t out = 70 * spec.heads * spec.head_size;
  EXPECT_TRUE(std::equal(before.y.begin() + out, before.y.end(), after.y.begin() + out));
  EXPECT_TRUE(std::equal(before.dqkv.begin() + 70 * Row(spec), before.dqkv.end(),
                         after.dqkv.begin() + 70 * Row(spec)));
  EXPECT_NE(before.y.front(), after.y.front());
}

TEST(AttentionTest, RefusesWindowsAndFirstKeysWithoutCausality) {
  const AttentionSpec whole = WithoutCausality(Spec(1, 1, 4));
  for (const AttentionSpec& spec : {WithWindow(whole, 3), WithWindow(Spec(1, 1, 4), -1)}) {
    EXPECT_EQ(ToStatus(CheckSpec(spec)).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(std::string(CheckSpec(WithWindow(whole, 3)).message),
            "attention: a window of 3 with causal false, want 0, or at least 1 with true");
  const int32_t first = 0;
  AttentionForward forward;
  forward.qkv = View(DType::kF32, {1, 1, 12}, nullptr);
  forward.first_key = &first;
  AttentionBackward backward;
  backward.qkv = forward.qkv;
  backward.first_key = &first;
  for (const Error& error :
       {NewAttention(1, whole)->Forward(forward), NewAttention(1, whole)->Backward(backward)}) {
    EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(error.message),
              "attention: first keys of queries with causal false, want true");
  }
}

TEST(AttentionTest, HeadsOfAGroupShareKeysAndValues) {
  ExpectIsTheFormula(Spec(4, 2, 16), {2, 70});
  ExpectIsTheFormula(Spec(6, 1, 16), {1, 40});
}

TEST(AttentionTest, TurnsQueriesAndKeysByTheirPositions) {
  AttentionSpec spec = Spec(4, 2, 16);
  SetRopeTheta(10000, &spec);
  ExpectIsTheFormula(spec, {2, 70});
  SetRopeTheta(100, &spec);
  ExpectIsTheFormula(spec, {1, 257});
}

TEST(AttentionTest, PlanesTurnByWhateverFrequenciesTheyAreGiven) {
  AttentionSpec spec = Spec(2, 1, 8);
  const double frequencies[] = {0.5, 0.0001, 0, 3};
  spec.frequencies = frequencies;
  ExpectIsTheFormula(spec, {1, 70});
}

TEST(AttentionTest, DropsWhatTheMaskDrops) {
  AttentionSpec spec = Spec(4, 2, 16);
  spec.dropout = 0.3f;
  SetRopeTheta(10000, &spec);
  ExpectIsTheFormula(spec, {3, 70});
}

TEST(AttentionTest, BF16IsRoundedOnce) {
  AttentionSpec spec = Spec(2, 2, 32);
  spec.compute = DType::kBF16;
  ExpectIsTheFormula(spec, {2, 100});
  SetRopeTheta(10000, &spec);
  spec.dropout = 0.1f;
  ExpectIsTheFormula(spec, {1, 65});
}

// With one feature a head and q = k = 0, all scores are 0, so y is the mean of the values.
TEST(AttentionTest, EqualScoresGiveTheMeanOfWhatCameBefore) {
  const Floats qkv = {0, 0, 6, 0, 0, 2, 0, 0, 10};
  Floats y(3), log_sum_exp(3);
  ASSERT_TRUE(NewAttention(1, Spec(1, 1, 1))
                  ->Forward({View(DType::kF32, {1, 3, 3}, qkv.data()),
                             View(DType::kF32, {1, 3, 1}, y.data()), log_sum_exp.data(), 0, 0})
                  .ok());
  EXPECT_NEAR(y[0], 6, 1e-6);
  EXPECT_NEAR(y[1], 4, 1e-6);
  EXPECT_NEAR(y[2], 6, 1e-6);
  EXPECT_NEAR(log_sum_exp[0], 0, 1e-6);
  EXPECT_NEAR(log_sum_exp[2], std::log(3), 1e-6);
}

TEST(AttentionTest, TheGradientIsTheNumericOne) {
  AttentionSpec spec = Spec(2, 1, 4);
  SetRopeTheta(10, &spec);
  spec.dropout = 0.25f;
  const Sizes sizes{1, 6};
  const Floats qkv = RandomQkv(spec, sizes), dy = RandomDy(spec, sizes);
  const Pass pass(1, spec, sizes, 1, qkv, dy);
  const auto loss = [&](size_t at, float h) {
    Floats moved = qkv;
    moved[at] += h;
    const Pass of_moved(1, spec, sizes, 1, moved, dy);
    double sum = 0;
    for (size_t i = 0; i < dy.size(); ++i) sum += double{of_moved.y[i]} * double{dy[i]};
    return sum;
  };
  for (size_t i = 0; i < qkv.size(); ++i) {
    EXPECT_NEAR(pass.dqkv[i], (loss(i, 1e-2f) - loss(i, -1e-2f)) / 2e-2, 2e-3) << i;
  }
}

TEST(AttentionTest, DependsNeitherOnThreadsNorOnTheDivisionOfABatch) {
  AttentionSpec spec = Spec(4, 2, 32);
  spec.dropout = 0.1f;
  const Sizes sizes{6, 70};
  const Floats qkv = RandomQkv(spec, sizes), dy = RandomDy(spec, sizes);
  const Pass one(1, spec, sizes, 6, qkv, dy);
  for (const Pass& other : {Pass(3, spec, sizes, 6, qkv, dy), Pass(2, spec, sizes, 2, qkv, dy),
                            Pass(2, spec, sizes, 1, qkv, dy)}) {
    EXPECT_EQ(one.y, other.y);
    EXPECT_EQ(one.log_sum_exp, other.log_sum_exp);
    EXPECT_EQ(one.dqkv, other.dqkv);
  }
}

TEST(AttentionTest, NothingDependsOnLaterPositions) {
  const AttentionSpec spec = Spec(2, 2, 32);
  const Sizes sizes{1, 150};
  Floats qkv = RandomQkv(spec, sizes);
  const Floats dy = RandomDy(spec, sizes);
  const Pass before(1, spec, sizes, 1, qkv, dy);
  for (int64_t t : {149, 100, 64, 1}) {
    qkv[t * Row(spec)] = qkv[(t + 1) * Row(spec) - 1] = 1e20f;  // of query and value
    const Pass after(1, spec, sizes, 1, qkv, dy);
    const int64_t earlier = t * spec.heads * spec.head_size;
    EXPECT_TRUE(std::equal(before.y.begin(), before.y.begin() + earlier, after.y.begin())) << t;
    EXPECT_NE(before.y[earlier], after.y[earlier]) << t;
  }
}

TEST(AttentionTest, ANanReachesWhatSeesIt) {
  const AttentionSpec spec = Spec(1, 1, 16);
  const Sizes sizes{1, 150};
  for (int64_t at : {0, 16, 32}) {  // a query, a key, a value
    Floats qkv = RandomQkv(spec, sizes);
    qkv[100 * Row(spec) + at] = std::nanf("");
    const Pass pass(1, spec, sizes, 1, qkv, RandomDy(spec, sizes));
    EXPECT_FALSE(std::isnan(pass.y[95 * 16]));
    EXPECT_TRUE(std::isnan(pass.y[100 * 16]));
    EXPECT_EQ(std::isnan(pass.y[149 * 16]), at != 0);
  }
}

TEST(AttentionTest, AnEvaluationDropsNothing) {
  AttentionSpec spec = Spec(2, 2, 16);
  const Sizes sizes{2, 40};
  const Pass plain(spec, sizes);
  spec.dropout = 0.5f;
  Floats qkv = RandomQkv(spec, sizes), y(plain.y.size());
  ASSERT_TRUE(NewAttention(2, spec)
                  ->Forward({View(DType::kF32, {2, 40, Row(spec)}, qkv.data()),
                             View(DType::kF32, {2, 40, 32}, y.data()), nullptr, 0, 0})
                  .ok());
  EXPECT_EQ(y, plain.y);
}

// Returns positions [first, first + count) of each sample, with `row` numbers each. PutPart is the
// inverse.
Floats Part(const Floats& all, const Sizes& sizes, int64_t row, int64_t first, int64_t count) {
  Floats part;
  for (int64_t sample = 0; sample < sizes.batch; ++sample) {
    const auto from = all.begin() + (sample * sizes.positions + first) * row;
    part.insert(part.end(), from, from + count * row);
  }
  return part;
}
void PutPart(const Floats& part, const Sizes& sizes, int64_t row, int64_t first, Floats* all) {
  const auto numbers = static_cast<int64_t>(part.size()) / sizes.batch;
  for (int64_t sample = 0; sample < sizes.batch; ++sample) {
    std::copy_n(part.begin() + sample * numbers, numbers,
                all->begin() + (sample * sizes.positions + first) * row);
  }
}

// Returns those of positions [first, first + count) of each sample.
std::vector<int32_t> FirstKeysOfPart(const Limits& limits, const Sizes& sizes, int64_t first,
                                     int64_t count) {
  const Floats all(limits.first_key.begin(), limits.first_key.end());
  if (all.empty()) return {};
  const Floats part = Part(all, sizes, 1, first, count);
  return {part.begin(), part.end()};
}
const int32_t* DataOrNull(const std::vector<int32_t>& values) {
  return values.empty() ? nullptr : values.data();
}

// Returns y of all positions, computed in steps of the given number of positions.
Floats Continued(const AttentionSpec& spec, const Sizes& sizes, const Floats& qkv,
                 const std::vector<int64_t>& steps, const Limits& limits = {}) {
  const int64_t context = sizes.positions, in = Row(spec), out = spec.heads * spec.head_size;
  const auto attention = NewAttention(2, spec);
  TestTensor cache(spec.compute, {sizes.batch, 2, context, spec.kv_heads, spec.head_size});
  Floats y(sizes.batch * context * out);
  int64_t first = 0;
  for (const int64_t count : steps) {
    TestTensor x(spec.compute, {sizes.batch, count, in}, Part(qkv, sizes, in, first, count));
    TestTensor result(spec.compute, {sizes.batch, count, out});
    const std::vector<int32_t> first_key = FirstKeysOfPart(limits, sizes, first, count);
    EXPECT_TRUE(attention
                    ->Continue({x.view(), result.view(), cache.view(), first, nullptr,
                                DataOrNull(first_key)})
                    .ok());
    PutPart(result.Read(), sizes, out, first, &y);
    first += count;
  }
  return y;
}

TEST(AttentionTest, PositionsWithACacheHaveTheBitsOfTheWholeSequence) {
  AttentionSpec rotary = Spec(4, 2, 24);
  SetRopeTheta(10000, &rotary);
  AttentionSpec narrow = Spec(2, 2, 32);
  narrow.compute = DType::kBF16;
  const Sizes sizes{2, 150};
  for (const AttentionSpec& spec : {Spec(3, 3, 32), rotary, narrow}) {
    const Floats qkv = RandomQkv(spec, sizes);
    const Floats whole = Pass(1, spec, sizes, 2, qkv, RandomDy(spec, sizes)).y;
    EXPECT_EQ(Continued(spec, sizes, qkv, {150}), whole);
    EXPECT_EQ(Continued(spec, sizes, qkv, {61, 1, 1, 1, 1, 5, 75, 5}), whole);
  }
}

TEST(AttentionTest, WindowsAndFirstKeysWithACacheHaveTheBitsOfTheWholeSequence) {
  AttentionSpec narrow = Spec(2, 2, 32);
  narrow.compute = DType::kBF16;
  const Sizes sizes{2, 150};
  const Limits documents = DocumentsAt({{3, 64, 100}, {66, 149}}, sizes.positions);
  for (const AttentionSpec& plain : {Spec(3, 3, 32), narrow}) {
    for (const int64_t window : {0, 20}) {
      const AttentionSpec spec = WithWindow(plain, window);
      const Floats qkv = RandomQkv(spec, sizes);
      for (const Limits& limits : {Limits{}, documents}) {
        const Floats whole = Pass(1, spec, sizes, 2, qkv, RandomDy(spec, sizes), limits).y;
        EXPECT_EQ(Continued(spec, sizes, qkv, {61, 1, 1, 1, 1, 5, 75, 5}, limits), whole);
      }
    }
  }
}

// Returns dqkv of all positions, computed in slices: forward in order, backward from the last
// slice.
Floats SlicedGradient(const AttentionSpec& spec, const Sizes& sizes, const Floats& qkv,
                      const Floats& dy, const std::vector<int64_t>& slices,
                      const Limits& limits = {}) {
  const int64_t context = sizes.positions, in = Row(spec), out = spec.heads * spec.head_size;
  const auto attention = NewAttention(2, spec);
  const Shape cache_shape = {sizes.batch, 2, context, spec.kv_heads, spec.head_size};
  TestTensor cache(spec.compute, cache_shape);
  Floats dcache(cache_shape.elements());
  struct Slice {
    int64_t first, count;
    TestTensor x, y;
    Floats log_sum_exp;
    std::vector<int32_t> first_key;
  };
  std::vector<Slice> saved;
  int64_t first = 0;
  for (const int64_t count : slices) {
    saved.push_back(
        {first, count,
         TestTensor(spec.compute, {sizes.batch, count, in}, Part(qkv, sizes, in, first, count)),
         TestTensor(spec.compute, {sizes.batch, count, out}),
         Floats(sizes.batch * spec.heads * count), FirstKeysOfPart(limits, sizes, first, count)});
    Slice& s = saved.back();
    EXPECT_TRUE(attention
                    ->Continue({s.x.view(), s.y.view(), cache.view(), first, s.log_sum_exp.data(),
                                DataOrNull(s.first_key)})
                    .ok());
    first += count;
  }
  Floats gradient(qkv.size());
  for (auto s = saved.rbegin(); s != saved.rend(); ++s) {
    TestTensor gy(spec.compute, {sizes.batch, s->count, out},
                  Part(dy, sizes, out, s->first, s->count));
    TestTensor gx(spec.compute, {sizes.batch, s->count, in});
    AttentionBackward backward{s->x.view(),           s->y.view(), gy.view(), gx.view(),
                               s->log_sum_exp.data(), 0,           0,         cache.view(),
                               dcache.data(),         s->first};
    backward.first_key = DataOrNull(s->first_key);
    EXPECT_TRUE(attention->Backward(backward).ok());
    PutPart(gx.Read(), sizes, in, s->first, &gradient);
  }
  return gradient;
}

TEST(AttentionTest, SlicesHaveTheGradientOfTheWholeSequence) {
  AttentionSpec rotary = Spec(4, 2, 24);
  SetRopeTheta(10000, &rotary);
  AttentionSpec narrow = Spec(2, 2, 32);
  narrow.compute = DType::kBF16;
  const Sizes sizes{2, 150};
  for (const AttentionSpec& spec : {Spec(3, 3, 32), rotary, narrow}) {
    const Floats qkv = RandomQkv(spec, sizes), dy = RandomDy(spec, sizes);
    const Floats whole = Pass(1, spec, sizes, 2, qkv, dy).dqkv;
    const Doubles want(whole.begin(), whole.end());
    const double bound = spec.compute == DType::kF32 ? 0x1p-17 : 0x1p-5;
    for (const std::vector<int64_t>& slices :
         {std::vector<int64_t>{150}, {75, 75}, {30, 30, 30, 30, 30}, {61, 1, 83, 5}}) {
      ExpectNear(SlicedGradient(spec, sizes, qkv, dy, slices), want, bound, "dqkv");
    }
  }
}

TEST(AttentionTest, SlicesOfWindowsAndDocumentsHaveTheGradientOfTheWholeSequence) {
  const Sizes sizes{2, 150};
  const Limits documents = DocumentsAt({{3, 64, 100}, {66, 149}}, sizes.positions);
  AttentionSpec spec = WithWindow(Spec(4, 2, 24), 40);
  SetRopeTheta(10000, &spec);
  const Floats qkv = RandomQkv(spec, sizes), dy = RandomDy(spec, sizes);
  for (const Limits& limits : {Limits{}, documents}) {
    const Floats whole = Pass(1, spec, sizes, 2, qkv, dy, limits).dqkv;
    for (const std::vector<int64_t>& slices :
         {std::vector<int64_t>{75, 75}, {30, 30, 30, 30, 30}, {61, 1, 83, 5}}) {
      ExpectNear(SlicedGradient(spec, sizes, qkv, dy, slices, limits),
                 Doubles(whole.begin(), whole.end()), 0x1p-17, "dqkv");
    }
  }
}

TEST(AttentionTest, RefusesDropoutInSlices) {
  AttentionSpec spec = Spec(1, 1, 4);
  spec.dropout = 0.5f;
  float log_sum_exp;
  const Error error = NewAttention(1, spec)->Continue(
      {View(DType::kF32, {1, 1, 12}, nullptr), View(DType::kF32, {1, 1, 4}, nullptr),
       View(DType::kF32, {1, 2, 8, 1, 4}, nullptr), 0, &log_sum_exp});
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(error.message).find("dropout 0.5 in training with a cache, want 0"),
            std::string::npos);
}

// The cache holds rotated keys in the compute type; without a cache rotated keys are never rounded.
TEST(AttentionTest, RotaryPositionsInBF16WithACacheAreCloseToTheWholeSequence) {
  AttentionSpec spec = Spec(4, 2, 16);
  SetRopeTheta(10000, &spec);
  spec.compute = DType::kBF16;
  const Sizes sizes{1, 70};
  const Floats qkv = RandomQkv(spec, sizes);
  const Floats whole = Pass(1, spec, sizes, 1, qkv, RandomDy(spec, sizes)).y;
  ExpectNear(Continued(spec, sizes, qkv, {40, 30}), Doubles(whole.begin(), whole.end()), 0x1p-5,
             "y");
}

TEST(AttentionTest, RefusesPositionsBeyondTheCache) {
  const Error error =
      NewAttention(1, Spec(1, 1, 4))
          ->Continue({View(DType::kF32, {1, 3, 12}, nullptr), View(DType::kF32, {1, 3, 4}, nullptr),
                      View(DType::kF32, {1, 2, 8, 1, 4}, nullptr), 6});
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(error.message).find("positions 6 to 8, want them within a context of 8"),
            std::string::npos);
}

TEST(AttentionTest, LargeScoresDoNotOverflow) {
  const AttentionSpec spec = Spec(1, 1, 16);
  const Sizes sizes{1, 64};
  const Pass pass(1, spec, sizes, 1, RandomQkv(spec, sizes, 1000), RandomDy(spec, sizes));
  for (float v : pass.y) EXPECT_TRUE(std::isfinite(v));
  for (float v : pass.dqkv) EXPECT_TRUE(std::isfinite(v));
}

TEST(AttentionTest, ABatchOfNoSamplesIsNoError) {
  const auto attention = NewAttention(2, Spec(1, 1, 4));
  const TensorView qkv = View(DType::kF32, {0, 5, 12}, nullptr);
  const TensorView y = View(DType::kF32, {0, 5, 4}, nullptr);
  EXPECT_TRUE(attention->Forward({qkv, y, nullptr, 0, 0}).ok());
  EXPECT_TRUE(attention->Backward({qkv, y, y, qkv, nullptr, 0, 0}).ok());
}

TEST(AttentionTest, RefusesNumbersThatMakeNone) {
  EXPECT_TRUE(CheckSpec(Spec(4, 2, 16)).ok());
  AttentionSpec odd = Spec(1, 1, 3), always = Spec(1, 1, 4);
  SetRopeTheta(10000, &odd);
  always.dropout = 1;
  for (const AttentionSpec& spec :
       {Spec(3, 2, 16), Spec(0, 1, 16), Spec(1, 0, 16), Spec(1, 1, 0), odd, always}) {
    EXPECT_EQ(ToStatus(CheckSpec(spec)).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(AttentionTest, RefusesDropoutOverTooManyScores) {
  AttentionSpec spec = Spec(16, 16, 4);
  spec.dropout = 0.1f;
  float lse;
  const Error error =
      NewAttention(1, spec)->Forward({View(DType::kF32, {1, 1 << 14, Row(spec)}, nullptr),
                                      View(DType::kF32, {1, 1 << 14, 64}, nullptr), &lse, 0, 0});
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(error.message).find("16384 positions"), std::string::npos);
}

}  // namespace
}  // namespace thinwire::cpu
