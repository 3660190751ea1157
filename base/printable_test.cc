#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace thinwire {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(PrintableTest, TextStaysWhatItIs) {
  for (const char* text :
       {"", "stage 2: loss is nan", "‖x − x̂‖, 8 × 8, 語, 🙂", "a\nb"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(Printable("\x1b[2Jgone\r\a\t\x7f"), "\\x1b[2Jgone\\x0d\\x07\\x09\\x7f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\u009b2J\u0080\u00a0"), "\\xc2\\x9b2J\\xc2\\x80\u00a0");  // C1 and no more
}

TEST(PrintableTest, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(Printable("a\xff\x9b z"), "a\\xff\\x9b z");
  EXPECT_EQ(Printable("\xc0\x9b"), "\\xc0\\x9b");                    // overlong
  EXPECT_EQ(Printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");           // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last
  EXPECT_EQ(Printable("x\xe2\x80"), "x\\xe2\\x80");                  // cut short
}

TEST(PrintableTest, ALineHasNoLineBreaks) {
  EXPECT_EQ(PrintableLine("a\nstage 1: all is well"), "a\\nstage 1: all is well");
}

TEST(PrintableTest, WhatIsLongIsCutAndSaysHowMuch) {
  EXPECT_EQ(Printable(std::string(4096, 'a')), std::string(4096, 'a'));
  const std::string cut = Printable(std::string(5000, 'a'));
  EXPECT_THAT(cut, StartsWith(std::string(4096, 'a') + " "));
  EXPECT_THAT(cut, EndsWith("a … (904 more bytes)"));
}

TEST(PrintableTest, ItIsCutBetweenCharacters) {
  const std::string text = std::string(4095, 'a') + "é" + std::string(10, 'b');
  EXPECT_EQ(Printable(text), std::string(4095, 'a') + " … (12 more bytes)");
}

}  // namespace
}  // namespace thinwire
