#include "data/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AddedToken Token(int32_t id, const std::string& content, bool is_special = false) {
  AddedToken token;
  token.id = id;
  token.content = content;
  token.is_special = is_special;
  return token;
}

AddedTokens Of(const std::vector<AddedToken>& tokens, Specials specials = Specials::kText) {
  AddedTokens added(specials);
  for (const AddedToken& token : tokens) added.Add(token, token.content);
  return added;
}

// Returns parts as "text" or "ID:text".
std::vector<std::string> Parts(const AddedTokens& tokens, const std::string& text) {
  std::vector<std::string> parts;
  for (const AddedTokens::Part& part : tokens.Split(text)) {
    const std::string id = part.id < 0 ? "" : std::to_string(part.id) + ":";
    parts.push_back(id + std::string(part.text));
  }
  return parts;
}

TEST(AddedTokensTest, TheLeftmostAndLongestCounts) {
  const AddedTokens tokens =
      Of({Token(1, "<a>"), Token(2, "<a><b>"), Token(3, "b><c"), Token(4, "  ")});
  EXPECT_THAT(Parts(tokens, "x<a>y"), ElementsAre("x", "1:<a>", "y"));
  EXPECT_THAT(Parts(tokens, "<a><b><c"), ElementsAre("2:<a><b>", "<c"));
  EXPECT_THAT(Parts(tokens, "<a><b <a><a>"), ElementsAre("1:<a>", "<b ", "1:<a>", "1:<a>"));
  EXPECT_THAT(Parts(tokens, "     "), ElementsAre("4:  ", "4:  ", " "));
  EXPECT_THAT(Parts(tokens, "<a"), ElementsAre("<a"));
  EXPECT_THAT(Parts(tokens, ""), IsEmpty());
}

TEST(AddedTokensTest, SpecialTokensStayTextWithWhatIsWithinThem) {
  const std::vector<AddedToken> tokens = {Token(1, "<end>", /*is_special=*/true), Token(2, "end"),
                                          Token(3, "<b>")};
  EXPECT_THAT(Parts(Of(tokens), "a<end>b end<b>"), ElementsAre("a<end>b ", "2:end", "3:<b>"));
  EXPECT_THAT(Parts(Of(tokens, Specials::kIds), "a<end>b"), ElementsAre("a", "1:<end>", "b"));
}

TEST(AddedTokensTest, WhiteSpaceBesideATokenMayBePartOfIt) {
  AddedToken left = Token(1, "<l>"), right = Token(2, "<r>");
  left.takes_left = right.takes_right = true;
  const AddedTokens tokens = Of({left, right});
  EXPECT_THAT(Parts(tokens, "a \u3000\n<l> b"), ElementsAre("a", "1: \u3000\n<l>", " b"));
  EXPECT_THAT(Parts(tokens, "a <r> \u00A0b"), ElementsAre("a ", "2:<r> \u00A0", "b"));
  EXPECT_THAT(Parts(tokens, "<r>  <l>"), ElementsAre("2:<r>  ", "1:<l>"));
}

TEST(AddedTokensTest, OfEqualSpellingsTheFirstCounts) {
  EXPECT_THAT(Parts(Of({Token(1, "<a>"), Token(2, "<a>")}), "<a>"), ElementsAre("1:<a>"));
}

}  // namespace
}  // namespace thinwire
