#include "data/normal_form.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

std::string Form(const std::string& text) {
  std::string buffer;
  return std::string(Composed(text, &buffer));
}

TEST(ComposedTest, LettersAndTheirMarksBecomeOneCharacter) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"e\u0301", "\u00E9"},
      {"xe\u0301y e\u0301", "x\u00E9y \u00E9"},
      {"a\u0301\u0323", "\u1EA1\u0301"},  // marks get the order of their classes
      {"a\u0323\u0301", "\u1EA1\u0301"},  //
      {"\u00E9\u0323", "\u1EB9\u0301"},   // a letter that is taken apart first
      {"e\u0301\u0301", "\u00E9\u0301"},  // a mark of its class keeps the second apart
      {"\u212B", "\u00C5"},               // the sign of Angstrom
      {"\u0344", "\u0308\u0301"},         // a mark of two
      {"\u0958", "\u0915\u093C"},         // a letter that is not composed
      {"\uFB2C", "\u05E9\u05BC\u05C1"},   //
      {"\u1112\u1161\u11AB", "\uD55C"},   // Hangul
      {"\uD558\u11AB", "\uD55C"},         //
      {"\u0646\u0651\u064E", "\u0646\u064E\u0651"},
      {"\u0301e", "\u0301e"},
      {"\u1161", "\u1161"},
  };
  for (const auto& [text, form] : cases) EXPECT_EQ(Form(text), form) << text;
}

TEST(ComposedTest, WhatIsInTheFormStaysWhereItIs) {
  for (const std::string text : {"", "plain", "caf\u00E9 \uD55C \u65E5\u672C", "\xFF\xCC"}) {
    std::string buffer;
    EXPECT_EQ(Composed(text, &buffer).data(), text.data()) << text;
  }
}

TEST(ComposedTest, BytesThatAreNoUtf8StayAndKeepApart) {
  EXPECT_EQ(Form("e\xFF\u0301"), "e\xFF\u0301");
  EXPECT_EQ(Form("\xFF"
                 "e\u0301\xCC"),
            "\xFF\u00E9\xCC");
}

TEST(ComposedTest, ManyMarksInARowAreNoDanger) {
  std::string text = "a", marks;
  for (int i = 0; i < 100000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  for (int i = 0; i < 49999; ++i) marks += "\u0323";
  for (int i = 0; i < 50000; ++i) marks += "\u0301";
  EXPECT_EQ(Form(text), "\u1EA1" + marks);
}

}  // namespace
}  // namespace thinwire
