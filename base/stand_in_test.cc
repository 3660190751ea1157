#include "base/stand_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kPointer[] =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707\n"
    "size 548105171\n";

std::string Refusal(std::string_view content) {
  const absl::Status status = CheckNoStandIn("model.safetensors", content);
  EXPECT_EQ(status.code(), status.ok() ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss);
  return std::string(status.message());
}

TEST(StandInTest, APointerSaysWhatItPointsToAndHowToGetIt) {
  EXPECT_EQ(Refusal(kPointer),
            "model.safetensors: is a pointer of Git LFS to 548105171 bytes, want the file itself: "
            "`git lfs pull` gets it");
  EXPECT_THAT(Refusal("version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("is a pointer of Git LFS, want"));
}

TEST(StandInTest, APageIsKnownHoweverItIsSpelt) {
  for (const char* page :
       {"<!DOCTYPE html><html>", "\n  <!doctype HTML>\n", "<html lang=\"en\">"}) {
    EXPECT_THAT(Refusal(page), HasSubstr("model.safetensors: is an HTML page, want")) << page;
  }
}

TEST(StandInTest, AnArchiveIsNamedByItsKind) {
  const auto refusal = [](std::string_view content) {
    return std::string(CheckNoArchive("text.gz", content).message());
  };
  EXPECT_EQ(refusal("\x1F\x8B\x08"), "text.gz: is packed (gzip), want it unpacked");
  EXPECT_THAT(refusal("PK\x03\x04"), HasSubstr("(zip)"));
  EXPECT_THAT(refusal(std::string_view("\xFD"
                                       "7zXZ\0\0",
                                       7)),
              HasSubstr("(xz)"));
  EXPECT_THAT(refusal("\x28\xB5\x2F\xFD!"), HasSubstr("(zstd)"));
  EXPECT_THAT(refusal("BZh9"), HasSubstr("(bzip2)"));
  EXPECT_THAT(refusal(std::string(257, 'a') + "ustar"), HasSubstr("(tar)"));
  EXPECT_EQ(refusal(std::string(257, 'a')), "");
  for (const char* content : {"", "B", "PK", "text"}) EXPECT_EQ(refusal(content), "") << content;
}

TEST(StandInTest, OtherContentIsTakenForWhatItIs) {
  for (const char* content : {"", "{}", "v", "<a>", "version 1", "#version: 0.2\n", "B", "PK"}) {
    EXPECT_EQ(Refusal(content), "") << content;
  }
}

TEST(StandInTest, AnotherErrorStandsWhereTheFileIsNothingOfThat) {
  const std::string path = ::testing::TempDir() + "/stand_in";
  const absl::Status other = absl::InvalidArgumentError("no JSON");
  EXPECT_EQ(StandInOr(path, other), other) << "there is no file";
  std::ofstream(path) << "{";
  EXPECT_EQ(StandInOr(path, other), other);
  std::ofstream(path) << kPointer;
  EXPECT_THAT(std::string(StandInOr(path, other).message()), HasSubstr("is a pointer of Git LFS"));
  EXPECT_TRUE(StandInOr(path, absl::OkStatus()).ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace thinwire
