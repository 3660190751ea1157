#include "stage_server/stage/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 40;

// Samples that a feed gave, in host memory.
struct Taken {
  std::vector<float> inputs;
  std::vector<int32_t> labels;
  uint64_t digest = 0;

  friend bool operator==(const Taken& a, const Taken& b) {
    return a.inputs == b.inputs && a.labels == b.labels && a.digest == b.digest;
  }
};

class FeedTest : public ::testing::Test {
 protected:
  FeedTest() {
    DataOptions options;
    options.name = "digits";
    options.limit = options.test_limit = kSamples;
    data_ = *LoadData(options);
    spec_.shuffle = {ShuffleKind::kSamples, 3, 8};
    spec_.inputs = spec_.labels = true;
  }

  static Taken Take(Feed* feed, const FeedRequest& request) {
    const auto samples = feed->Take(request);
    EXPECT_TRUE(samples.ok()) << samples.status();
    const Tensor& inputs = samples->inputs;
    Taken taken{std::vector<float>(inputs.elements()), samples->labels, samples->digest};
    EXPECT_TRUE(
        inputs.device()->CopyToHost(taken.inputs.data(), inputs.data(), inputs.bytes()).ok());
    return taken;
  }

  // Returns the requests of two epochs of training and an evaluation.
  static std::vector<FeedRequest> Requests() {
    std::vector<FeedRequest> requests;
    for (uint32_t epoch : {1, 2}) {
      for (int64_t first = 0; first < kSamples; first += 8) {
        requests.push_back({PHASE_TRAIN, epoch, {first, first + 8}});
      }
    }
    requests.push_back({PHASE_EVALUATE_COMPRESSED, 2, {0, kSamples}});
    return requests;
  }

  DataSplits data_;
  FeedSpec spec_;
};

TEST_F(FeedTest, LoadingAheadChangesNothing) {
  Feed plain(spec_, &data_, CpuBackend(0)), ahead(spec_, &data_, NewLateBackend());
  ahead.Announce(Requests());
  for (const FeedRequest& request : Requests()) {
    EXPECT_TRUE(Take(&ahead, request) == Take(&plain, request)) << request.range.first;
  }
}

TEST_F(FeedTest, CountsTheLabelsOfARange) {
  Feed feed(spec_, &data_, CpuBackend(0));
  EXPECT_EQ(*feed.CountLabels({PHASE_TRAIN, 1, {3, 8}}), 5);
  EXPECT_EQ(*feed.CountLabels({PHASE_TRAIN, 1, {3, 8}}), 5);
  EXPECT_EQ(*feed.CountLabels({PHASE_TRAIN, 2, {0, kSamples}}), kSamples);
}

// Digits whose labels are counted: of odd samples they are ignored.
class CountedLabels final : public Dataset {
 public:
  CountedLabels(const Dataset* digits, bool hides, int* reads)
      : digits_(digits), hides_(hides), reads_(reads) {}
  int64_t size() const override { return digits_->size(); }
  int64_t classes() const override { return digits_->classes(); }
  Shape sample_shape() const override { return digits_->sample_shape(); }
  bool hides_tokens() const override { return hides_; }
  uint64_t digest() const override { return digits_->digest(); }
  void Labels(int64_t sample, const Augmentation& /*augmentation*/,
              absl::Span<int32_t> out) const override {
    ++*reads_;
    out[0] = sample % 2 == 1 ? -1 : 0;
  }

 private:
  const Dataset* const digits_;
  const bool hides_;
  int* const reads_;
};

TEST_F(FeedTest, ReadsTheLabelsThatItCountsOnlyWhereSomeMayBeIgnored) {
  for (const bool hides : {false, true}) {
    int reads = 0;
    DataSplits data;
    data.train = std::make_unique<CountedLabels>(data_.train.get(), hides, &reads);
    Feed feed(spec_, &data, CpuBackend(0));
    EXPECT_EQ(*feed.CountLabels({PHASE_TRAIN, 1, {0, kSamples}}), hides ? kSamples / 2 : kSamples);
    EXPECT_EQ(reads, hides ? kSamples : 0);
  }
}

// Digits whose labels take more memory than there is.
class HugeLabels final : public Dataset {
 public:
  explicit HugeLabels(const Dataset* digits) : digits_(digits) {}
  int64_t size() const override { return digits_->size(); }
  int64_t classes() const override { return digits_->classes(); }
  Shape sample_shape() const override { return digits_->sample_shape(); }
  uint64_t digest() const override { return digits_->digest(); }
  void Labels(int64_t, const Augmentation&, absl::Span<int32_t>) const override {
    throw std::bad_alloc();
  }

 private:
  const Dataset* const digits_;
};

TEST_F(FeedTest, LackOfMemoryInItsThreadIsAnError) {
  DataSplits data;
  data.train = std::make_unique<HugeLabels>(data_.train.get());
  spec_.inputs = false;
  Feed feed(spec_, &data, NewLateBackend());
  EXPECT_EQ(feed.Take(Requests().front()).status().code(), absl::StatusCode::kResourceExhausted);
}

// Reads two epochs of windows of Tiny Shakespeare and the first blocks of its test text.
class TextFeedTest : public ::testing::Test {
 protected:
  TextFeedTest() {
    DataOptions options;
    options.name = "shakespeare";
    options.text.tokens = TokenKind::kCharacters;
    options.text.context = kContext;
    options.text.windows = kSamples;
    data_ = *LoadData(options);
    spec_.shuffle = {ShuffleKind::kSamples, 3, 8};
    spec_.compute = DType::kBF16;
  }

  Samples Take(const FeedRequest& request, const Backend& backend = CpuBackend(0)) {
    Feed feed(spec_, &data_, backend);
    return *feed.Take(request);
  }
  static std::vector<int32_t> Ids(const Tensor& inputs) {
    std::vector<int32_t> ids(inputs.elements());
    EXPECT_TRUE(inputs.device()->CopyToHost(ids.data(), inputs.data(), inputs.bytes()).ok());
    return ids;
  }

  static constexpr int64_t kContext = 16;
  DataSplits data_;
  FeedSpec spec_;
};

TEST_F(TextFeedTest, LabelsAreTheNextTokensThoughTwoStagesLoadThem) {
  for (const FeedRequest& request :
       {FeedRequest{PHASE_TRAIN, 1, {8, 16}}, FeedRequest{PHASE_TRAIN, 2, {8, 16}},
        FeedRequest{PHASE_EVALUATE_COMPRESSED, 1, {8, 16}}}) {
    spec_.inputs = true;
    spec_.labels = false;
    const Samples first = Take(request);
    spec_.inputs = false;
    spec_.labels = true;
    const Samples last = Take(request);
    EXPECT_EQ(first.digest, last.digest);
    ASSERT_EQ(first.inputs.dtype(), DType::kI32) << "whatever the compute type is";
    ASSERT_EQ(first.inputs.shape(), (Shape{8, kContext}));
    const std::vector<int32_t> ids = Ids(first.inputs);
    ASSERT_EQ(last.labels.size(), ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i % kContext != 0) {
        EXPECT_EQ(last.labels[i - 1], ids[i]) << i;
      }
    }
  }
}

TEST_F(TextFeedTest, ASliceHasItsPositionsOfEverySampleOnAnyDevice) {
  spec_.inputs = spec_.labels = true;
  FeedRequest request = {PHASE_TRAIN, 1, {8, 16}};
  const Samples whole = Take(request);
  const std::vector<int32_t> ids = Ids(whole.inputs);
  request.positions = {5, 8};
  for (const Backend& backend : {CpuBackend(0), NewLateBackend()}) {
    const Samples slice = Take(request, backend);
    EXPECT_EQ(slice.digest, whole.digest);
    ASSERT_EQ(slice.inputs.shape(), (Shape{8, 3}));
    ASSERT_EQ(slice.labels.size(), 24u);
    const std::vector<int32_t> slice_ids = Ids(slice.inputs);
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t at = i / 3 * kContext + 5 + i % 3;
      EXPECT_EQ(slice_ids[i], ids[at]) << i;
      EXPECT_EQ(slice.labels[i], whole.labels[at]) << i;
    }
  }
}

TEST_F(TextFeedTest, WindowsAreElsewhereInTheNextEpoch) {
  spec_.inputs = true;
  const FeedRequest whole = {PHASE_TRAIN, 1, {0, kSamples}};
  EXPECT_EQ(Ids(Take(whole).inputs), Ids(Take(whole, NewLateBackend()).inputs));
  EXPECT_NE(Ids(Take(whole).inputs), Ids(Take({PHASE_TRAIN, 2, {0, kSamples}}).inputs));
}

// Texts of eight tokens. Sample i has documents that begin at positions 0, 1 + i % 2 and 5.
class PackedTexts final : public Dataset {
 public:
  int64_t size() const override { return kSamples; }
  int64_t classes() const override { return 2; }
  Shape sample_shape() const override { return {1, 8}; }
  int64_t labels_per_sample() const override { return 8; }
  bool is_text() const override { return true; }
  uint64_t digest() const override { return 0; }
  void Labels(int64_t /*sample*/, const Augmentation& /*augmentation*/,
              absl::Span<int32_t> out) const override {
    std::fill(out.begin(), out.end(), 0);
  }
  void LoadTokens(int64_t /*sample*/, const Augmentation& /*augmentation*/,
                  absl::Span<int32_t> out) const override {
    std::fill(out.begin(), out.end(), 0);
  }
  std::vector<int64_t> DocumentStarts(int64_t sample) const override { return {1 + sample % 2, 5}; }
};

TEST_F(FeedTest, DocumentsBeginInWholeSamplesWhateverTheSlice) {
  DataSplits data;
  data.test = std::make_unique<PackedTexts>();
  Feed feed(spec_, &data, CpuBackend(0));
  FeedRequest request = {PHASE_EVALUATE_COMPRESSED, 0, {1, 4}};
  const std::vector<uint32_t> wanted = {2, 5, 8 + 1, 8 + 5, 16 + 2, 16 + 5};
  EXPECT_EQ(feed.Take(request)->document_starts, wanted);
  request.positions = SampleRange{4, 6};
  EXPECT_EQ(feed.Take(request)->document_starts, wanted);
  request.range = {0, 12000};
  EXPECT_THAT(
      std::string(feed.Take(request).status().message()),
      AllOf(HasSubstr("where 24000 documents begin in the samples of a message takes 67872"),
            HasSubstr("a smaller data.batch_size")));
}

TEST_F(FeedTest, InputsAreOnTheDevice) {
  const Backend backend = NewLateBackend();
  Feed feed(spec_, &data_, backend);
  EXPECT_EQ(feed.Take({PHASE_TRAIN, 1, {0, 8}})->inputs.device(), backend.device);
}

TEST_F(FeedTest, WhatWasNotAnnouncedIsThereToo) {
  Feed plain(spec_, &data_, CpuBackend(0)), ahead(spec_, &data_, NewLateBackend());
  std::vector<FeedRequest> requests = Requests();
  ahead.Announce({requests.begin(), requests.begin() + 3});
  for (size_t i : {0, 5, 1, 1, 10}) {
    EXPECT_TRUE(Take(&ahead, requests[i]) == Take(&plain, requests[i])) << i;
  }
  ahead.Announce(requests);
  EXPECT_TRUE(Take(&ahead, requests[0]) == Take(&plain, requests[0]));
}

TEST_F(FeedTest, EndsWhateverWasAnnounced) {
  for (int i = 0; i < 20; ++i) {
    Feed feed(spec_, &data_, NewLateBackend());
    feed.Announce(Requests());
    if (i % 2 == 0) Take(&feed, Requests()[0]);
  }
}

}  // namespace
}  // namespace thinwire
