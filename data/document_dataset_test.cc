#include "data/document_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

constexpr DocumentToken kL = kLearned;

using Documents = std::vector<std::vector<DocumentToken>>;

class DocumentDatasetTest : public testing::Test {
 protected:
  DocumentDatasetTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/document_dataset_" + test->name();
    std::filesystem::create_directories(folder_);
  }
  ~DocumentDatasetTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<DocumentDataset> Make(const Documents& documents, Packing packing,
                                        TooLong too_long = TooLong::kSplit, int64_t context = 4) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const auto store = DocumentStore::Open(folder_, "d", 1 << 20, [&](const auto& sink) {
      absl::Status status;
      for (const auto& document : documents) status.Update(sink(document));
      return status;
    });
    EXPECT_TRUE(store.ok()) << store.status();
    const DocumentSamples samples = {context, 1 << 20, packing, too_long, /*filler=*/9};
    const SampleRange all = {0, static_cast<int64_t>(documents.size())};
    auto data = DocumentDataset::Make({*store, all, folder_, "digest"}, samples);
    EXPECT_TRUE(data.ok()) << data.status();
    return *std::move(data);
  }

  std::string folder_;
};

std::vector<int32_t> IdsOf(const Dataset& data, int64_t sample) {
  std::vector<int32_t> ids(static_cast<size_t>(data.sample_shape()[1]));
  data.LoadTokens(sample, {}, absl::MakeSpan(ids));
  return ids;
}

std::vector<int32_t> LabelsOf(const Dataset& data, int64_t sample) {
  std::vector<int32_t> labels(static_cast<size_t>(data.labels_per_sample()));
  data.Labels(sample, {}, absl::MakeSpan(labels));
  return labels;
}

TEST_F(DocumentDatasetTest, ADocumentIsFilledUpAndLearnedWhereItIsMarked) {
  const auto data = Make({{1, 2, 3 | kL}, {4, 5 | kL, 6, 7 | kL}}, Packing::kNone);
  ASSERT_EQ(data->size(), 2);
  EXPECT_THAT(IdsOf(*data, 0), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(LabelsOf(*data, 0), ElementsAre(-1, 3, -1, -1));
  EXPECT_THAT(IdsOf(*data, 1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(LabelsOf(*data, 1), ElementsAre(5, -1, 7, -1));
  EXPECT_TRUE(data->may_lack_labels());
  EXPECT_FALSE(data->hides_tokens());
}

TEST_F(DocumentDatasetTest, ALongDocumentGoesOnInTheNextSample) {
  const Documents documents = {{1 | kL, 2 | kL, 3 | kL, 4 | kL, 5 | kL, 6 | kL}};
  const auto split = Make(documents, Packing::kNone);
  ASSERT_EQ(split->size(), 2);
  EXPECT_THAT(LabelsOf(*split, 0), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(IdsOf(*split, 1), ElementsAre(5, 6, 9, 9));
  EXPECT_THAT(LabelsOf(*split, 1), ElementsAre(6, -1, -1, -1));
  const auto cut = Make(documents, Packing::kNone, TooLong::kTruncate);
  ASSERT_EQ(cut->size(), 1);
  EXPECT_THAT(LabelsOf(*cut, 0), ElementsAre(2, 3, 4, -1));
}

TEST_F(DocumentDatasetTest, WhatHasNothingToLearnIsNoSample) {
  const auto data =
      Make({{1, 2, 3}, {4 | kL, 5}, {6, 7 | kL}, {1, 2, 3, 4, 5 | kL}}, Packing::kNone);
  ASSERT_EQ(data->size(), 2) << "a first token is no label";
  EXPECT_THAT(IdsOf(*data, 0), ElementsAre(6, 7, 9, 9));
  EXPECT_THAT(LabelsOf(*data, 1), ElementsAre(-1, -1, -1, 5));
  EXPECT_EQ(Make({{1, 2, 3, 4, 5 | kL}}, Packing::kNone, TooLong::kTruncate)->size(), 0);
}

TEST_F(DocumentDatasetTest, AStreamLearnsFromOneDocumentToTheNext) {
  const auto data = Make({{1 | kL, 2 | kL}, {3 | kL, 4 | kL, 5 | kL}, {6}}, Packing::kStream);
  ASSERT_EQ(data->size(), 1) << "the last two have no label";
  EXPECT_THAT(IdsOf(*data, 0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(LabelsOf(*data, 0), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(data->DocumentStarts(0), ElementsAre()) << "each sees those before it";
}

TEST_F(DocumentDatasetTest, WholeDocumentsShareASampleAndLearnNothingOfEachOther) {
  const auto data =
      Make({{1 | kL, 2 | kL}, {3 | kL, 4 | kL, 5 | kL}, {6 | kL, 7 | kL}}, Packing::kBestFit);
  ASSERT_EQ(data->size(), 2);
  EXPECT_THAT(IdsOf(*data, 0), ElementsAre(1, 2, 6, 7));
  EXPECT_THAT(LabelsOf(*data, 0), ElementsAre(2, -1, 7, -1));
  EXPECT_THAT(IdsOf(*data, 1), ElementsAre(3, 4, 5, 9));
  EXPECT_THAT(data->DocumentStarts(0), ElementsAre(2));
  EXPECT_THAT(data->DocumentStarts(1), ElementsAre());
}

TEST_F(DocumentDatasetTest, EveryTokenStandsInOneSampleUnderEveryPacking) {
  RandomStream random(RandomKey(1, "documents"));
  Documents documents(200);
  DocumentToken next = 0;
  for (auto& document : documents) {
    document.resize(2 + random.Below(40));
    for (DocumentToken& token : document) token = ++next | kL;
  }
  for (const Packing packing : thinwire::AllOf<Packing>()) {
    const auto data = Make(documents, packing, TooLong::kSplit, /*context=*/16);
    std::map<int32_t, int> seen;
    std::set<int32_t> labels;
    for (int64_t sample = 0; sample < data->size(); ++sample) {
      for (const int32_t id : IdsOf(*data, sample)) ++seen[id];
      const std::vector<int32_t> here = LabelsOf(*data, sample);
      for (const int32_t label : here) {
        if (label < 0) continue;
        EXPECT_TRUE(labels.insert(label).second) << label;
      }
    }
    const size_t firsts = packing == Packing::kStream ? 1 : documents.size();
    EXPECT_EQ(labels.size(), next - firsts) << Name(packing);
    for (const auto& [id, count] : seen) {
      if (id == 9) continue;
      EXPECT_EQ(count, 1) << Name(packing) << " " << id;
    }
    EXPECT_TRUE(data->status().ok());
  }
}

TEST_F(DocumentDatasetTest, KeepsSamplesAndItsDigestNamesThem) {
  const Documents documents = {{1, 2 | kL}, {3, 4 | kL}, {5, 6 | kL}};
  const auto all = Make(documents, Packing::kNone), last = Make(documents, Packing::kNone);
  last->Keep({1, 3});
  EXPECT_EQ(last->size(), 2);
  EXPECT_THAT(LabelsOf(*last, 0), ElementsAre(4, -1, -1, -1));
  std::set<uint64_t> digests = {all->digest(), last->digest(),
                                Make(documents, Packing::kStream)->digest(),
                                Make(documents, Packing::kNone, TooLong::kDrop)->digest(),
                                Make(documents, Packing::kNone, TooLong::kSplit, 5)->digest()};
  EXPECT_EQ(digests.size(), 5u);
  EXPECT_EQ(Make(documents, Packing::kNone)->digest(), all->digest());
}

TEST_F(DocumentDatasetTest, AFileThatIsCutUnderARunIsSeenInTheStatus) {
  const auto data = Make({{1, 2 | kL}}, Packing::kNone);
  std::filesystem::resize_file(folder_ + "/d.tokens", 4);
  IdsOf(*data, 0);
  EXPECT_FALSE(data->status().ok());
}

}  // namespace
}  // namespace thinwire
