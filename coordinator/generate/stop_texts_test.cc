#include "coordinator/generate/stop_texts.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace thinwire {
namespace {

// Returns what is shown of each piece, each before a "|", and what is left at the end.
std::string ShownOf(const std::vector<std::string>& stops,
                    std::initializer_list<const char*> pieces) {
  StopTexts texts(stops);
  std::string shown;
  for (const char* const piece : pieces) shown += texts.Take(piece) + "|";
  return shown + texts.Rest();
}

TEST(StopTextsTest, WithoutAnyATextIsShownAtOnce) {
  EXPECT_EQ(ShownOf({}, {"To be", ", or", ""}), "To be|, or||");
}

TEST(StopTextsTest, TheTextEndsBeforeTheFirstOfThem) {
  EXPECT_EQ(ShownOf({"or", "not", "be,"}, {"To be, or not", "to be"}), "To ||");
}

TEST(StopTextsTest, WhatMayBecomeOneIsHeldBackUntilItDoesNot) {
  EXPECT_EQ(ShownOf({"\n\n"}, {"a\n", "b\n", "\nc", "d"}), "a|\nb|||");
  EXPECT_EQ(ShownOf({"abac"}, {"aba", "bac", "x"}), "|ab||") << "it begins within its beginning";
  EXPECT_EQ(ShownOf({"END", "ENOUGH"}, {"THE EN", "EMY"}), "THE |ENEMY|");
}

TEST(StopTextsTest, ABeginningAtTheEndIsShownThen) {
  EXPECT_EQ(ShownOf({"</s>"}, {"a </", "s"}), "a ||</s");
}

TEST(StopTextsTest, TellsWhetherOneHasCome) {
  StopTexts texts({"b"});
  texts.Take("a");
  EXPECT_FALSE(texts.seen());
  texts.Take("ab");
  EXPECT_TRUE(texts.seen());
  EXPECT_EQ(texts.Take("a"), "");
}

}  // namespace
}  // namespace thinwire
