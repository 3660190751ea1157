// Tests pieces that are reduced by the factors of low_rank, against sums that the test makes
// itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "compress/cpu/kernels.h"
#include "compress/low_rank_matrices.h"
#include "nn/cpu/ops.h"
#include "stage_server/replicas/averager.h"
#include "stage_server/replicas/fake_segment_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Matrix = std::vector<double>;  // row by row

constexpr int64_t kRows = 96, kColumns = 48;

// Returns numbers in (-1, 1) that the seed determines.
Matrix RandomMatrix(uint64_t seed, int64_t rows = kRows, int64_t columns = kColumns) {
  Matrix all;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const uint32_t draw = Philox(RandomKey(seed, "matrix"), static_cast<uint64_t>(i))[0];
    all.push_back(static_cast<float>(draw >> 8) * 0x1p-23f - 1);
  }
  return all;
}

// Returns a b, where a has `rows` rows and b `inner`.
Matrix Product(const Matrix& a, const Matrix& b, int64_t rows, int64_t inner) {
  const auto columns = static_cast<int64_t>(b.size()) / inner;
  Matrix c(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < inner; ++k) {
      for (int64_t j = 0; j < columns; ++j) {
        c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
      }
    }
  }
  return c;
}

Matrix Transposed(const Matrix& a, int64_t rows) {
  const auto columns = static_cast<int64_t>(a.size()) / rows;
  Matrix t(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  }
  return t;
}

Matrix Sum(const Matrix& a, const Matrix& b) {
  Matrix sum = a;
  for (size_t i = 0; i < a.size(); ++i) sum[i] += b[i];
  return sum;
}

double Distance(const Matrix& a, const Matrix& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += a[i] * a[i];
  }
  return std::sqrt(difference / norm);
}

// PowerSGD of a sum, in double: its Algorithms 1 and 2.
class Reference {
 public:
  explicit Reference(int64_t rank) : rank_(rank), q_(static_cast<size_t>(kColumns * rank)) {
    std::vector<float> column(kColumns);
    for (int64_t j = 0; j < rank; ++j) {
      LowRankStartColumn(nullptr, kColumns, rank, j, column.data());
      for (int64_t c = 0; c < kColumns; ++c) q_[c * rank + j] = column[c];
    }
  }

  // Returns what the sum becomes.
  Matrix Reduce(const Matrix& sum) {
    basis_ = Product(sum, q_, kRows, kColumns);
    for (int64_t j = 0; j < rank_; ++j) {
      for (int64_t k = 0; k < j; ++k) Scale(j, k, -Dot(j, k));
      Scale(j, j, 1 / std::sqrt(Dot(j, j)) - 1);
    }
    q_ = Product(Transposed(sum, kRows), basis_, kColumns, kRows);
    return Used(sum);
  }
  // Returns what one replica's matrix becomes through the last basis.
  Matrix Used(const Matrix& m) const {
    const Matrix q = Product(Transposed(m, kRows), basis_, kColumns, kRows);
    return Product(basis_, Transposed(q, kColumns), kRows, rank_);
  }

 private:
  double Dot(int64_t j, int64_t k) const {
    double dot = 0;
    for (int64_t i = 0; i < kRows; ++i) dot += basis_[i * rank_ + j] * basis_[i * rank_ + k];
    return dot;
  }
  // Adds `factor` times column k to column j.
  void Scale(int64_t j, int64_t k, double factor) {
    for (int64_t i = 0; i < kRows; ++i) basis_[i * rank_ + j] += factor * basis_[i * rank_ + k];
  }

  const int64_t rank_;
  Matrix q_, basis_;
};

// A link to a peer that sends given messages, and keeps what it gets.
class ScriptedLink final : public Link {
 public:
  explicit ScriptedLink(std::deque<Message> script) : script_(std::move(script)) {}

  uint64_t Send(Message) override { return 0; }
  absl::StatusOr<Message> Receive(SteadyTime) override {
    if (script_.empty()) return absl::UnavailableError("the peer sends nothing");
    Message message = std::move(script_.front());
    script_.pop_front();
    return message;
  }
  void Close(absl::Status) override {}
  absl::Status Flush(SteadyTime) override { return absl::OkStatus(); }
  uint64_t SocketBytesAcked() const override { return 0; }

 private:
  std::deque<Message> script_;
};

// A stage of one matrix, of as many replicas.
class Stage {
 public:
  Stage(int replicas, uint32_t rank, FeedbackKind feedback, int carriers = 1)
      : replicas_(replicas), segment_({std::vector<float>(kRows * kColumns, 1)}) {
    Parameter& matrix = segment_.parameters()[0];
    matrix.spec.shape = {kRows, kColumns};
    for (Tensor* tensor : {&matrix.value, &matrix.gradient}) {
      *tensor = Tensor(tensor->buffer(), DType::kF32, {kRows, kColumns});
    }
    ExchangeOptions options;
    options.replicas.count = replicas;
    options.carriers = carriers;
    options.replicas.digest_every = 0;
    options.replicas.contributions.codec.kind = CodecKind::kLowRank;
    options.replicas.contributions.codec.rank = rank;
    options.replicas.contributions.feedback.kind = feedback;
    options.replicas.average.codec.kind = CodecKind::kFp16;  // not asked for factors
    options.patience = std::make_shared<Patience>();
    options.error_every = 1;
    options.device = CpuDevice();
    options.ops = ops_.get();
    options.kernels = CpuCodecKernels();
    averager_ = *ReplicaAverager::New(options, {{0, &segment_}});
    EpochSpec epoch;
    epoch.shuffle = {ShuffleKind::kSamples, 1, replicas};
    epoch.microbatches = replicas;
    epoch.epoch = 1;
    epoch.samples = 100 * replicas;
    averager_->StartEpoch(epoch);
  }

  ReplicaAverager& averager() { return *averager_; }
  Parameter& matrix() { return segment_.parameters()[0]; }

  absl::Status Contribute(const ExchangeStep& step, int replica, const Matrix& gradient) {
    std::copy(gradient.begin(), gradient.end(), matrix().gradient.floats().begin());
    return averager_->Contribute(step, replica);
  }
  // Returns what all use of a gradient of each replica.
  Matrix Exchange(uint64_t number, bool compress, const std::vector<Matrix>& gradients) {
    const ExchangeStep step{/*epoch=*/1, number, compress, replicas_};
    EXPECT_TRUE(averager_->StartStep(step).ok());
    for (int replica = 0; replica < replicas_; ++replica) {
      const absl::Status contributed = Contribute(step, replica, gradients[replica]);
      EXPECT_TRUE(contributed.ok()) << contributed;
    }
    const absl::Status finished = averager_->Finish(step);
    EXPECT_TRUE(finished.ok()) << finished;
    const auto used = matrix().gradient.floats();
    return Matrix(used.begin(), used.end());
  }

 private:
  const int replicas_;
  const std::unique_ptr<Ops> ops_ = NewCpuOps(/*threads=*/1);
  FakeSegment segment_;
  std::unique_ptr<ReplicaAverager> averager_;
};

TEST(FactoredSumTest, IsThatOfPowerSgdWithErrorFeedback) {
  constexpr int kReplicas = 3, kRank = 4;
  Stage stage(kReplicas, kRank, FeedbackKind::kEf);
  Reference reference(kRank);
  std::vector<Matrix> errors(kReplicas, Matrix(kRows * kColumns));
  for (uint64_t step = 1; step <= 5; ++step) {
    std::vector<Matrix> gradients, messages;
    Matrix sum(kRows * kColumns);
    for (int replica = 0; replica < kReplicas; ++replica) {
      gradients.push_back(RandomMatrix(10 * step + static_cast<uint64_t>(replica)));
      messages.push_back(Sum(gradients.back(), errors[replica]));
      sum = Sum(sum, messages.back());
    }
    const Matrix expected = reference.Reduce(sum);
    EXPECT_LT(Distance(expected, stage.Exchange(step, /*compress=*/true, gradients)), 1e-5);
    for (int replica = 0; replica < kReplicas; ++replica) {
      const Matrix used = reference.Used(messages[replica]);
      for (size_t i = 0; i < used.size(); ++i) errors[replica][i] = messages[replica][i] - used[i];
    }
  }
}

// The last step is exact and pays off the errors.
TEST(FactoredSumTest, WhatWasUsedAndTheErrorsAreTheGradients) {
  Stage stage(2, /*rank=*/1, FeedbackKind::kEf);
  Matrix used(kRows * kColumns), given(used);
  for (uint64_t step = 1; step <= 6; ++step) {
    const std::vector<Matrix> gradients = {RandomMatrix(2 * step), RandomMatrix(2 * step + 1)};
    given = Sum(Sum(given, gradients[0]), gradients[1]);
    used = Sum(used, stage.Exchange(step, /*compress=*/step < 6, gradients));
    if (step == 5) {
      EXPECT_GT(Distance(given, used), 0.1);
    }
  }
  EXPECT_LT(Distance(given, used), 1e-6);
}

TEST(FactoredSumTest, OfTheHighestRankASumOfLowerRankIsExact) {
  Stage stage(3, kColumns - 1, FeedbackKind::kNone);
  std::vector<Matrix> gradients;
  Matrix sum(kRows * kColumns);
  for (uint64_t replica = 0; replica < 3; ++replica) {
    gradients.push_back(Product(RandomMatrix(replica, kRows, 2),
                                RandomMatrix(replica + 10, 2, kColumns), kRows, 2));
    sum = Sum(sum, gradients.back());
  }
  for (uint64_t step = 1; step <= 2; ++step) {
    EXPECT_LT(Distance(sum, stage.Exchange(step, /*compress=*/true, gradients)), 2e-6);
  }
}

TEST(FactoredSumTest, ElementsCountOnceAndBytesOfBothFactors) {
  constexpr uint64_t kFloats = 2 * (kRows + kColumns);
  Stage stage(4, /*rank=*/2, FeedbackKind::kEf);
  stage.Exchange(1, /*compress=*/true, std::vector<Matrix>(4, RandomMatrix(1)));
  for (const Phase phase : {PHASE_CONTRIBUTION, PHASE_AVERAGE}) {
    const BoundaryStatistics counted = stage.averager().counts().Of(phase).all();
    EXPECT_EQ(counted.train.messages, 2u * 3);
    EXPECT_EQ(counted.train.elements, 3u * kRows * kColumns);
    EXPECT_EQ(counted.train.raw_bytes, 4u * 3 * kRows * kColumns);
    EXPECT_EQ(counted.train.payload_bytes, 4u * 3 * kFloats);
    EXPECT_GT(counted.train.wire_bytes, counted.train.payload_bytes);
  }
  const MeasuredErrors errors = stage.averager().counts().Of(PHASE_CONTRIBUTION).all().errors;
  EXPECT_EQ(errors.messages, 4u);
  // Equal gradients lose what each loses, all of which feedback keeps.
  EXPECT_NEAR(errors.last_codec.relative_error, errors.last_codec.relative_residual, 1e-6);
  EXPECT_GT(errors.last_codec.relative_error, 0.5);
  EXPECT_EQ(stage.averager().messages_of_step(), 2u * 5 + 1);
}

TEST(FactoredSumTest, AGradientThatIsNotFiniteIsNamed) {
  for (const FeedbackKind feedback : {FeedbackKind::kNone, FeedbackKind::kEf}) {
    Stage stage(2, /*rank=*/2, feedback);
    const ExchangeStep step{/*epoch=*/1, /*step=*/7, /*compress=*/true, /*with_samples=*/2};
    ASSERT_TRUE(stage.Contribute(step, 0, RandomMatrix(1)).ok());
    Matrix bad = RandomMatrix(2);
    bad[100] = INFINITY;
    const absl::Status status = stage.Contribute(step, 1, bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("replica 1, p0[0]: step 7: low_rank: element 100 is inf"));
  }
}

// Returns the factor of zeros that a peer sends in step 1.
Message FactorOfPeer(Phase phase, const Shape& shape, float first = 0) {
  auto numbers = std::make_shared<std::vector<float>>(shape.elements());
  (*numbers)[0] = first;
  Message message;
  message.key.phase = phase;
  message.key.direction = DIRECTION_GRADIENT;
  message.key.epoch = message.key.step = 1;
  message.key.microbatch = 1;
  message.shape = shape;
  message.payload = {numbers,
                     {reinterpret_cast<const uint8_t*>(numbers->data()), 4 * numbers->size()}};
  return message;
}

// Returns how a step ends at the owner of a piece when its peer sends that.
absl::Status WithPeer(std::deque<Message> script) {
  Stage stage(2, /*rank=*/2, FeedbackKind::kEf, /*carriers=*/2);
  stage.averager().peers().Attach(1, std::make_unique<ScriptedLink>(std::move(script)));
  const ExchangeStep step{/*epoch=*/1, /*step=*/1, /*compress=*/true, /*with_samples=*/2};
  EXPECT_TRUE(stage.Contribute(step, 0, RandomMatrix(1)).ok());
  return stage.averager().Finish(step);
}

TEST(FactoredSumTest, APeerWhoseFactorIsWrongIsNamed) {
  const Message first = FactorOfPeer(PHASE_CONTRIBUTION, {kRows, 2});
  const Message second = FactorOfPeer(PHASE_SECOND_CONTRIBUTION, {kColumns, 2});
  EXPECT_TRUE(WithPeer({first, second}).ok());
  EXPECT_TRUE(WithPeer({second, first}).ok());  // early, and told apart
  const auto said = [](const Message& one, const Message& other) {
    return std::string(WithPeer({one, other}).message());
  };
  EXPECT_THAT(said(FactorOfPeer(PHASE_CONTRIBUTION, {kRows, 3}), second),
              HasSubstr("replica 1, p0[0]: step 1: from carrier 1: a factor of fp32 [96, 3] with "
                        "codec none, want fp32 [96, 2] as it is"));
  EXPECT_THAT(said(first, FactorOfPeer(PHASE_SECOND_CONTRIBUTION, {kRows, 2})),
              HasSubstr("from carrier 1: a factor of fp32 [96, 2]"));
  for (const Phase phase : {PHASE_CONTRIBUTION, PHASE_SECOND_CONTRIBUTION}) {
    const bool is_first = phase == PHASE_CONTRIBUTION;
    const Message bad = FactorOfPeer(phase, {is_first ? kRows : kColumns, 2}, NAN);
    const absl::Status status = WithPeer({is_first ? bad : first, is_first ? second : bad});
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("replica 1, p0[0]: step 1: from carrier 1: a number that is not finite"));
  }
  Message cut = first;
  cut.payload.bytes = cut.payload.bytes.subspan(1);
  EXPECT_THAT(said(cut, second), HasSubstr("a factor of 767 bytes, want 768"));
  Message marked = first;
  marked.first_visit = true;
  EXPECT_THAT(said(marked, second), HasSubstr("first_visit or state_digest of a factor"));
}

}  // namespace
}  // namespace thinwire
