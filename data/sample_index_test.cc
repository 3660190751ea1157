#include "data/sample_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Samples = std::vector<std::vector<Stretch>>;

class SampleIndexTest : public testing::Test {
 protected:
  SampleIndexTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/sample_index_" + test->name();
    std::filesystem::create_directories(folder_);
  }
  ~SampleIndexTest() override { std::filesystem::remove_all(folder_); }

  // Opens an index and counts how often its samples were asked for.
  absl::StatusOr<std::shared_ptr<const SampleIndex>> Open(const Samples& samples,
                                                          const SampleIndex::Bounds& bounds = {100,
                                                                                               8}) {
    return SampleIndex::Open(folder_, "name", bounds,
                             [&](const std::string& folder, const SampleIndex::Sink& sink) {
                               EXPECT_EQ(folder, folder_);
                               ++made_;
                               absl::Status status;
                               for (const auto& pieces : samples) {
                                 for (size_t i = 0; i < pieces.size(); ++i)
                                   status.Update(sink(pieces[i], i == 0));
                               }
                               return status;
                             });
  }

  std::string path() const { return folder_ + "/name.packs"; }
  std::string Content() const {
    std::ifstream file(path(), std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }

  std::string folder_;
  int made_ = 0;
};

Samples All(const SampleIndex& index) {
  Samples samples;
  for (int64_t i = 0; i < index.samples(); ++i) {
    const auto pieces = index.Pieces(i);
    EXPECT_TRUE(pieces.ok()) << pieces.status();
    samples.push_back(*pieces);
  }
  return samples;
}

TEST_F(SampleIndexTest, IsMadeOnceAndReadAnywhere) {
  const Samples packed = {{{0, 3, false}, {10, 5, true}}, {{3, 7, false}}};
  EXPECT_EQ(All(**Open(packed)), packed);
  EXPECT_EQ(All(**Open(packed)), packed);
  EXPECT_EQ(made_, 1);
}

TEST_F(SampleIndexTest, SamplesOfOnePieceHaveNoBegins) {
  const Samples single = {{{0, 8, true}}, {{8, 2, false}}, {{10, 3, false}}};
  EXPECT_EQ(All(**Open(single)), single);
  EXPECT_EQ(Content().size(), 40 + 3 * 8u);
  EXPECT_EQ(All(**Open(single)), single);
  EXPECT_EQ(made_, 1);
}

TEST_F(SampleIndexTest, MayBeEmpty) {
  EXPECT_EQ((*Open({}))->samples(), 0);
  EXPECT_EQ((*Open({}))->samples(), 0);
  EXPECT_EQ(made_, 1);
}

TEST_F(SampleIndexTest, WhatIsNotIntactIsMadeAnew) {
  ASSERT_TRUE(Open({{{0, 3, false}, {10, 5, true}}, {{3, 7, false}}}).ok());
  const std::string good = Content();
  const Samples other = {{{50, 2, false}}};
  for (size_t size = 0; size < good.size(); ++size) {
    std::ofstream(path(), std::ios::binary) << good.substr(0, size);
    EXPECT_EQ(All(**Open(other)), other) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string broken = good;
    broken[at] ^= 1;
    std::ofstream(path(), std::ios::binary) << broken;
    EXPECT_EQ(All(**Open(other)), other) << at;
  }
}

TEST_F(SampleIndexTest, WhatIsBeyondTheDocumentsOrASampleIsMadeAnew) {
  const Samples samples = {{{90, 4, false}, {94, 4, true}}};
  ASSERT_TRUE(Open(samples, {99, 8}).ok());
  for (const auto& bounds : {SampleIndex::Bounds{98, 8}, SampleIndex::Bounds{99, 7}}) {
    EXPECT_THAT(std::string(Open(samples, bounds).status().message()),
                HasSubstr("is not what was written to it"));
  }
}

TEST_F(SampleIndexTest, ManySamplesAreWrittenInPortions) {
  Samples samples;
  for (int64_t i = 0; i < 150'000; ++i) samples.push_back({{i, 1, false}, {i + 1, 2, true}});
  const auto index = Open(samples, {200'000, 8});
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ((*index)->samples(), 150'000);
  EXPECT_THAT(*(*index)->Pieces(149'999),
              ElementsAre(Stretch{149'999, 1, false}, Stretch{150'000, 2, true}));
}

TEST_F(SampleIndexTest, AFileThatIsCutUnderItsReaderIsAnError) {
  const auto index = Open({{{0, 3, false}, {10, 5, true}}, {{3, 7, false}}});
  std::filesystem::resize_file(path(), 44);
  EXPECT_THAT(std::string((*index)->Pieces(1).status().message()), HasSubstr(" ends at byte "));
}

}  // namespace
}  // namespace thinwire
