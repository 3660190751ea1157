#include "data/id_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Id>
std::string Bytes(const std::vector<Id>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id)};
}

// Returns a header of llm.c.
std::string Header(uint32_t magic, uint32_t version, uint32_t ids) {
  std::vector<uint32_t> words(256);
  words[0] = magic;
  words[1] = version;
  words[2] = ids;
  return Bytes(words);
}

class IdFilesTest : public testing::Test {
 protected:
  IdFilesTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/id_files_" + test->name();
    std::filesystem::create_directories(folder_);
  }
  ~IdFilesTest() override { std::filesystem::remove_all(folder_); }

  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    return folder_ + "/" + name;
  }

  std::string Refusal(const std::string& bytes, IdType type, absl::StatusCode code) const {
    const absl::Status status = IdFiles::Open({Write("refused", bytes)}, type).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  std::string folder_;
};

std::vector<int32_t> Read(const TokenSource& source, int64_t first, size_t count) {
  std::vector<int32_t> ids(count);
  const absl::Status status = source.Read(first, absl::MakeSpan(ids));
  EXPECT_TRUE(status.ok()) << status;
  return ids;
}

TEST_F(IdFilesTest, IdsAloneAreReadInTheTypeThatIsSaid) {
  const std::string narrow = Write("narrow", Bytes<uint16_t>({7, 65535, 0}));
  const auto files = IdFiles::Open({narrow}, IdType::kUint16);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Read(**files, 0, 3), ElementsAre(7, 65535, 0));
  const std::string wide = Write("wide", Bytes<uint32_t>({70000, 1}));
  EXPECT_THAT(Read(**IdFiles::Open({wide}, IdType::kUint32), 0, 2), ElementsAre(70000, 1));
}

TEST_F(IdFilesTest, AHeaderSaysTheType) {
  const std::string narrow = Write("narrow", Header(20240520, 1, 2) + Bytes<uint16_t>({5, 50256}));
  const std::string wide = Write("wide", Header(20240801, 7, 1) + Bytes<uint32_t>({128000}));
  const auto files = IdFiles::Open({narrow, wide}, IdType::kHeader);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Read(**files, 0, 3), ElementsAre(5, 50256, 128000));
  EXPECT_TRUE(IdFiles::Open({narrow}, IdType::kUint16).ok()) << "saying it too does no harm";
}

TEST_F(IdFilesTest, APlaceMayLieInAnyFileAndARangeGoThroughSeveral) {
  std::vector<std::string> paths;
  for (uint16_t i = 0; i < 4; ++i) {
    const uint16_t first = 3 * i;
    paths.push_back(Write(std::to_string(i),
                          Bytes<uint16_t>({first, uint16_t(first + 1), uint16_t(first + 2)})));
  }
  const auto files = IdFiles::Open(paths, IdType::kUint16);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ((*files)->size(), 12);
  for (int64_t first = 0; first < 12; ++first) {
    const std::vector<int32_t> ids = Read(**files, first, static_cast<size_t>(12 - first));
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], first + static_cast<int64_t>(i));
  }
  EXPECT_EQ(*(*files)->GreatestId(), 11);
}

TEST_F(IdFilesTest, WhatIsNoFileOfIdsIsRefusedAndNamed) {
  const auto invalid = absl::StatusCode::kInvalidArgument, loss = absl::StatusCode::kDataLoss;
  const std::string bare = Bytes<uint16_t>({1, 2, 3});
  EXPECT_THAT(Refusal(bare, IdType::kHeader, invalid),
              HasSubstr("/refused has no header of llm.c: want data.type: uint16 or uint32"));
  EXPECT_THAT(Refusal(bare, IdType::kUint32, invalid),
              HasSubstr("/refused has 6 bytes, want ids of 4 bytes (data.type: uint32)"));
  EXPECT_THAT(Refusal("", IdType::kUint16, invalid), HasSubstr("has no ids, want at least one"));
  EXPECT_THAT(Refusal(Header(20240520, 1, 0), IdType::kHeader, invalid), HasSubstr("has no ids"));
  EXPECT_THAT(Refusal(Header(20240520, 2, 3) + bare, IdType::kHeader, loss),
              HasSubstr("its header has version 2, want 1 with 20240520"));
  EXPECT_THAT(Refusal(Header(20240520, 1, 4) + bare, IdType::kHeader, loss),
              HasSubstr("has 1030 bytes, want 1032 for the 4 ids that its header says"));
  EXPECT_THAT(Refusal(Header(20240520, 1, 4).substr(0, 9), IdType::kHeader, loss),
              HasSubstr("has 9 bytes, want 1032 for the 4 ids"));
  EXPECT_THAT(Refusal(Header(20240520, 1, 3) + bare, IdType::kUint32, invalid),
              HasSubstr("its header says uint16, but data.type is uint32"));
  EXPECT_THAT(Refusal("version https://git-lfs.github.com/spec/v1\n", IdType::kUint16, loss),
              HasSubstr("Git LFS"));
}

TEST_F(IdFilesTest, AnIdBeyondTheVocabularyIsNamedWithItsFileAndPlace) {
  const std::string first = Write("first", Bytes<uint32_t>({1, 2}));
  const std::string second = Write("second", Bytes<uint32_t>({3, 9, 4000000000u}));
  const auto files = IdFiles::Open({first, second}, IdType::kUint32);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ((*files)->GreatestId().status().message(),
            second + ": number 2 is 4000000000, want 0 to 2147483647, a token id");
  (*files)->Restrict(9);
  std::vector<int32_t> ids(4);
  EXPECT_EQ((*files)->Read(0, absl::MakeSpan(ids)).message(),
            second + ": number 1 is 9, want 0 to 8, a token id");
  EXPECT_TRUE((*files)->Read(0, absl::MakeSpan(ids).subspan(0, 3)).ok());
}

TEST_F(IdFilesTest, AFileThatChangesOrVanishesIsAnError) {
  const std::string path = Write("ids", Bytes<uint16_t>({1, 2, 3}));
  const auto files = IdFiles::Open({path}, IdType::kUint16);
  ASSERT_TRUE(files.ok()) << files.status();
  Write("ids", Bytes<uint16_t>({1, 2}));
  std::vector<int32_t> ids(1);
  EXPECT_EQ((*files)->Read(0, absl::MakeSpan(ids)).message(),
            path + " has 4 bytes, want 6, as when it was opened");
  std::filesystem::remove(path);
  EXPECT_EQ((*files)->Read(0, absl::MakeSpan(ids)).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace thinwire
