#include "data/bonds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> PartsOf(const Bonds& bonds, const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size(); at += parts.back().size()) {
    parts.push_back(text.substr(at, bonds.PartEnd(text, at) - at));
  }
  return parts;
}

TEST(BondsTest, ATextIsDividedWhereNoTokenHasBothCharacters) {
  Bonds bonds;
  bonds.Add("▁the");
  bonds.Add("▁▁");
  bonds.Add("日本");
  EXPECT_THAT(PartsOf(bonds, "▁the▁▁heat"), ElementsAre("▁the", "▁▁", "he", "a", "t"));
  EXPECT_THAT(PartsOf(bonds, "日本日e日"), ElementsAre("日本", "日", "e", "日"));
}

TEST(BondsTest, BytesThatAreNoUtf8StandAlone) {
  Bonds bonds;
  bonds.Add("ab\xFF\xFF");
  EXPECT_THAT(PartsOf(bonds, "ab\xFF\xFF"), ElementsAre("ab", "\xFF", "\xFF"));
}

}  // namespace
}  // namespace thinwire
