#include "data/masked_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MaskedIdsTest : public testing::Test {
 protected:
  MaskedIdsTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/masked_ids_" + test->name();
    std::filesystem::create_directories(folder_);
    for (int id = 0; id < 11; ++id) first_ += {static_cast<char>(id), 0};
    Write("a.bin", first_);
    Write("b.bin", std::string("\x14\0\x15\0", 4));
  }
  ~MaskedIdsTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  // Opens a.bin, with the ids 0 to 10, and b.bin, with 20 and 21.
  absl::StatusOr<std::shared_ptr<const TokenSource>> Open() const {
    return WithMasks(*IdFiles::Open({folder_ + "/a.bin", folder_ + "/b.bin"}, IdType::kUint16));
  }
  std::string Refusal(absl::StatusCode code) const {
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  std::string folder_, first_;
};

std::vector<int32_t> LabelsIn(const TokenSource& source, int64_t first, size_t count) {
  std::vector<int32_t> labels(count);
  EXPECT_TRUE(source.ReadLabels(first, absl::MakeSpan(labels)).ok());
  return labels;
}

uint64_t DigestOf(const TokenSource& source) {
  Digest digest;
  EXPECT_TRUE(source.AddTo(0, source.size(), &digest).ok());
  return digest.value();
}

TEST_F(MaskedIdsTest, EachIdHasABitFromTheLowestOn) {
  Write("a.mask", "\x05\x04");  // 0, 2 and 10
  Write("b.mask", "\x02");
  const auto source = *Open();
  EXPECT_TRUE(source->may_lack_labels());
  EXPECT_THAT(LabelsIn(*source, 0, 13),
              ElementsAre(0, -1, 2, -1, -1, -1, -1, -1, -1, -1, 10, -1, 21));
  EXPECT_THAT(LabelsIn(*source, 2, 1), ElementsAre(2));
  EXPECT_THAT(LabelsIn(*source, 9, 3), ElementsAre(-1, 10, -1));
  EXPECT_THAT(LabelsIn(*source, 12, 1), ElementsAre(21));
  std::vector<int32_t> ids(3);
  ASSERT_TRUE(source->Read(1, absl::MakeSpan(ids)).ok());
  EXPECT_THAT(ids, ElementsAre(1, 2, 3)) << "what is not learned is read all the same";
}

TEST_F(MaskedIdsTest, WithoutMasksAllIsLearned) {
  const auto source = *Open();
  EXPECT_FALSE(source->may_lack_labels());
  EXPECT_THAT(LabelsIn(*source, 9, 3), ElementsAre(9, 10, 20));
}

TEST_F(MaskedIdsTest, TheDigestChangesWithTheMask) {
  const uint64_t none = DigestOf(**Open());
  Write("a.mask", "\x05\x04");
  Write("b.mask", "\x03");
  const uint64_t some = DigestOf(**Open());
  EXPECT_NE(some, none);
  Write("b.mask", "\x01");
  EXPECT_NE(DigestOf(**Open()), some);
}

TEST_F(MaskedIdsTest, AMaskThatIsMissingOrDoesNotFitIsNamed) {
  Write("a.mask", "\x05\x04");
  EXPECT_EQ(Refusal(absl::StatusCode::kInvalidArgument),
            folder_ + "/b.bin has no " + folder_ + "/b.mask beside it, but there is " + folder_ +
                "/a.mask: want a mask of every file or of none");
  for (const char* const mask : {"", "\x01\x01"}) {
    Write("b.mask", mask);
    EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr("/b.mask has "));
    EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
                HasSubstr(" bytes, want 1, a bit for each of the 2 ids beside it"));
  }
  Write("b.mask", "\x01");
  const auto source = *Open();
  Write("b.mask", "");
  std::vector<int32_t> labels(1);
  EXPECT_TRUE(source->ReadLabels(3, absl::MakeSpan(labels)).ok());
  EXPECT_EQ(source->ReadLabels(12, absl::MakeSpan(labels)).code(), absl::StatusCode::kDataLoss);
}

TEST_F(MaskedIdsTest, FilesOfTheSameMaskAreNamed) {
  Write("c.000", std::string("\x14\0", 2));
  Write("c.001", std::string("\x15\0", 2));
  const auto files =
      *IdFiles::Open({folder_ + "/a.bin", folder_ + "/c.000", folder_ + "/c.001"}, IdType::kUint16);
  EXPECT_FALSE((*WithMasks(files))->may_lack_labels()) << "there is no mask";
  Write("a.mask", "\x05\x04");
  Write("c.mask", "\x01");
  const absl::Status status = WithMasks(files).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(folder_ + "/c.000 and " + folder_ +
                        "/c.001 have the same mask beside them, " + folder_ + "/c.mask: want "));
}

TEST(MaskBesideTest, IsNamedAfterTheIds) {
  EXPECT_EQ(MaskBeside("a.b/train.bin"), "a.b/train.mask");
  EXPECT_EQ(MaskBeside("a.b/train"), "a.b/train.mask");
  EXPECT_TRUE(IsMask("a/train.mask"));
  EXPECT_FALSE(IsMask("a/train.bin"));
}

}  // namespace
}  // namespace thinwire
