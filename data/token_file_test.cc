#include "data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <numeric>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

TEST(TokenFileTest, DigestsAreThoseOfIdsInMemory) {
  const std::string folder = testing::TempDir() + "/token_file";
  std::filesystem::create_directories(folder);
  std::vector<int32_t> ids((size_t{1} << 19) + 5);
  std::iota(ids.begin(), ids.end(), 0);
  const auto file = TokenFile::Open(folder, "a", 1 << 20, [&ids](const TokenFile::Sink& sink) {
    const auto all = absl::MakeConstSpan(ids);
    absl::Status status = sink(all.first(3));
    status.Update(sink(all.subspan(3)));
    return status;
  });
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::remove_all(folder);
  EXPECT_EQ((*file)->size(), static_cast<int64_t>(ids.size()));
  TokenRange kept{std::shared_ptr<const TokenSource>(*file)}, memory(ids);
  for (const int64_t first : {524'293, 524'290, 400'000, 7, 0}) {
    Digest ours, theirs;
    ASSERT_TRUE(kept.TakeFrom(first).AddTo(&ours).ok());
    ASSERT_TRUE(memory.TakeFrom(first).AddTo(&theirs).ok());
    EXPECT_EQ(ours.value(), theirs.value()) << first;
  }
  std::vector<int32_t> some(3);
  ASSERT_TRUE((*file)->Read(524'289, absl::MakeSpan(some)).ok());
  EXPECT_THAT(some, ElementsAre(524'289, 524'290, 524'291));
}

TEST(TokenFileTest, ASpareFileHasNoNameWhileItIsWritten) {
  const std::string folder = testing::TempDir() + "/spare_tokens";
  std::filesystem::create_directories(folder);
  const char* const set = getenv("TMPDIR");
  const std::string before = set != nullptr ? set : "";
  setenv("TMPDIR", folder.c_str(), /*overwrite=*/1);
  bool is_written = false;
  const auto file = TokenFile::Open(folder + "/none", "a", 9, [&](const TokenFile::Sink& sink) {
    const absl::Status status = sink({1, 2});
    is_written = true;
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "a process that is killed here leaves a file";
    return status;
  });
  set != nullptr ? setenv("TMPDIR", before.c_str(), /*overwrite=*/1) : unsetenv("TMPDIR");
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(is_written);
  std::vector<int32_t> ids(2);
  ASSERT_TRUE((*file)->Read(0, absl::MakeSpan(ids)).ok());
  EXPECT_THAT(ids, ElementsAre(1, 2));
}

TEST(TokenFileTest, ErrorsOfTheSourceAreItsOwn) {
  const auto file = TokenFile::Open(testing::TempDir(), "b", 9, [](const TokenFile::Sink& sink) {
    absl::Status status = sink({1, 2});
    status.Update(absl::InvalidArgumentError("a.txt is none"));
    return status;
  });
  EXPECT_EQ(file.status().message(), "a.txt is none");
  EXPECT_FALSE(std::filesystem::exists(testing::TempDir() + "/b.tokens"));
}

}  // namespace
}  // namespace thinwire
