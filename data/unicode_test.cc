#include "data/unicode.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace thinwire {
namespace {

CharacterClass ClassOf(uint32_t code) { return CharacterAt(Utf8(code), 0).kind; }

TEST(CharacterAtTest, EveryCharacterComesBackFromItsBytes) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (0xD800 <= code && code <= 0xDFFF) continue;
    const std::string bytes = Utf8(code);
    const Character character = CharacterAt(bytes, 0);
    ASSERT_EQ(character.code, code);
    ASSERT_EQ(character.bytes, bytes.size()) << code;
  }
}

TEST(WholeCharactersTest, LeavesOutWhatMoreBytesMightComplete) {
  for (const uint32_t code : {0x41u, 0xE9u, 0x20ACu, 0x1F600u}) {
    const std::string bytes = Utf8(code);
    for (size_t n = 1; n < bytes.size(); ++n) {
      EXPECT_EQ(WholeCharacters("ab" + bytes.substr(0, n)), 2u) << code << " " << n;
    }
    EXPECT_EQ(WholeCharacters("ab" + bytes), 2 + bytes.size());
  }
  EXPECT_EQ(WholeCharacters(""), 0u);
  EXPECT_EQ(WholeCharacters("\xFF"), 1u);
  EXPECT_EQ(WholeCharacters("\x80\x80\x80\x80"), 4u);
}

TEST(CharacterAtTest, WhatIsNotWellFormedIsOneByteOfNoClass) {
  const std::vector<std::string> bad = {
      "\x80",              // a byte that continues nothing
      "\xC3",              // cut short
      "\xE2\x82",          //
      "\xF0\x9F\x98",      //
      "\xC3(",             // not continued
      "\xC0\x80",          // overlong
      "\xE0\x80\x80",      //
      "\xF0\x80\x80\x80",  //
      "\xED\xA0\x80",      // a surrogate
      "\xF4\x90\x80\x80",  // above U+10FFFF
      "\xF8\x88\x80\x80",  // five bytes
      "\xFF",
  };
  for (const std::string& bytes : bad) {
    const Character character = CharacterAt(bytes, 0);
    EXPECT_EQ(character.code, kNoCode) << bytes;
    EXPECT_EQ(character.bytes, 1) << bytes;
    EXPECT_EQ(character.kind, CharacterClass::kOther) << bytes;
  }
}

TEST(CharacterAtTest, ClassesAreThoseOfUnicode) {
  const std::map<CharacterClass, std::u32string> examples = {
      {CharacterClass::kLetter, U"aZ\u00AA\u00E9\u03B1\u65E5\uD55C\U0001E900\u02B0"},
      {CharacterClass::kNumber, U"0\u00BD\u0661\u0967\u2168\U0001D7D8"},
      {CharacterClass::kSpace, U" \t\r\u0085\u00A0\u1680\u2028\u3000"},
      {CharacterClass::kOther, U"\u0001\u001C_'\u0301\u200B\u200D\uFEFF\U0001F600\U0010FFFF"},
  };
  for (const auto& [kind, codes] : examples) {
    for (const uint32_t code : codes) EXPECT_EQ(ClassOf(code), kind) << code;
  }
}

TEST(CaseOfTest, LettersWithoutCaseAndMarksAreEither) {
  const std::map<Case, std::u32string> examples = {
      {Case::kCapital, U"A\u00C5\u01C5\U0001E900"},
      {Case::kSmall, U"a\u00E9\u03B1"},
      {Case::kEither, U"\u65E5\u02B0\u00AA\u0301\u0903"},
      {Case::kNone, U"1 !\u00BD\U0001F600"},
  };
  for (const auto& [kind, codes] : examples) {
    for (const uint32_t code : codes) EXPECT_EQ(CaseOf(CharacterAt(Utf8(code), 0)), kind) << code;
  }
}

TEST(CharacterBeforeTest, IsTheOneThatEndsThere) {
  const std::string text = "a\u00e9\u65e5\xE6\x97z";
  EXPECT_EQ(CharacterBefore(text, 1).code, 'a');
  EXPECT_EQ(CharacterBefore(text, 3).code, 0xE9u);
  EXPECT_EQ(CharacterBefore(text, 6).code, 0x65E5u);
  for (const size_t end : {2, 4, 5, 7, 8}) {
    EXPECT_EQ(CharacterBefore(text, end).code, kNoCode) << end;
    EXPECT_EQ(CharacterBefore(text, end).bytes, 1) << end;
  }
  EXPECT_EQ(CharacterBefore(text, 9).code, 'z');
}

}  // namespace
}  // namespace thinwire
