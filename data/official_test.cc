#include "data/official.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace thinwire {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(OfficialDataTest, HasAddressesAndChecksumsForEveryFile) {
  std::set<std::string> names, checksums;
  for (const OfficialData& data : AllOfficialData()) {
    SCOPED_TRACE(data.name);
    EXPECT_TRUE(names.insert(data.name).second);
    EXPECT_EQ(&OfficialDataOf(data.name), &data);
    EXPECT_FALSE(data.sources.empty());
    for (const OfficialFile& file : data.files) {
      EXPECT_GT(file.bytes, 0);
      EXPECT_EQ(file.sha256.size(), 64u);
      EXPECT_TRUE(checksums.insert(file.sha256).second) << file.name;
    }
    for (const OfficialSource& source : data.sources) {
      EXPECT_EQ(source.files.size(), source.archive.empty() ? data.files.size() : 0);
      for (const std::string& address : source.files) EXPECT_THAT(address, StartsWith("https://"));
      if (source.archive.empty()) continue;
      EXPECT_THAT(source.archive, StartsWith("https://"));
      EXPECT_THAT(source.archive, testing::AnyOf(EndsWith(".tar.gz"), EndsWith(".zip")));
    }
  }
}

TEST(CheckOfficialTest, NamesSizeAndChecksumMetAndWanted) {
  const OfficialFile file = {"abc", 3,
                             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"};
  EXPECT_TRUE(CheckOfficial(file, "dir/abc", "abc").ok());
  const absl::Status status = CheckOfficial(file, "dir/abc", "");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            "dir/abc has SHA-256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 "
            "(0 bytes), want ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad (3 "
            "bytes)");
}

TEST(CheckOfficialTest, SaysWhatStandsInAFilesPlace) {
  const OfficialFile file = {"abc", 3, std::string(64, '0')};
  EXPECT_THAT(std::string(CheckOfficial(file, "dir/abc", "<!DOCTYPE html>").message()),
              StartsWith("dir/abc: is an HTML page"));
}

}  // namespace
}  // namespace thinwire
