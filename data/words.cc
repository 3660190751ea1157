#include "data/words.h"

#include <algorithm>

#include "data/unicode.h"

namespace thinwire {
namespace {

// Returns the bytes of an English contraction at the beginning of `text`; 0 if there is none.
size_t ContractionBytes(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(0, ending.size()) == ending) return ending.size();
  }
  return 0;
}

// Does the same for letters of any case. U+017F, the long s, is a case of s.
size_t AnyContractionBytes(std::string_view text) {
  constexpr std::string_view kLongS = "'\u017F";
  if (text.empty() || text[0] != '\'') return 0;
  if (text.substr(0, kLongS.size()) == kLongS) return kLongS.size();
  char small[3];
  const size_t size = std::min(text.size(), sizeof(small));
  for (size_t i = 0; i < size; ++i) {
    small[i] = 'A' <= text[i] && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
  }
  return ContractionBytes({small, size});
}

// Returns the end of the run of characters of class `kind` that begins at `at`.
size_t RunEnd(std::string_view text, size_t at, CharacterClass kind) {
  while (at < text.size()) {
    const Character character = CharacterAt(text, at);
    if (character.kind != kind) break;
    at += character.bytes;
  }
  return at;
}

// Returns the end of white space. It leaves its last character to the next word, unless that is its
// only one.
size_t SpaceEnd(std::string_view text, size_t at) {
  size_t last = at, end = at;
  while (end < text.size()) {
    const Character character = CharacterAt(text, end);
    if (character.kind != CharacterClass::kSpace) return last == at ? end : last;
    last = end;
    end += character.bytes;
  }
  return end;
}

size_t Gpt2End(std::string_view text, size_t at) {
  const size_t contraction = ContractionBytes(text.substr(at));
  if (contraction > 0) return at + contraction;
  const size_t body = text[at] == ' ' ? at + 1 : at;
  if (body < text.size()) {
    const CharacterClass kind = CharacterAt(text, body).kind;
    if (kind != CharacterClass::kSpace) return RunEnd(text, body, kind);
  }
  return SpaceEnd(text, at);
}

// A number ends the text before it, and so white space there keeps its last character.
size_t DigitsApartEnd(std::string_view text, size_t at) {
  const Character first = CharacterAt(text, at);
  if (IsDigit(first)) return at + first.bytes;
  const size_t space_end = RunEnd(text, at, CharacterClass::kSpace);
  if (space_end > at && space_end < text.size() && IsDigit(CharacterAt(text, space_end))) {
    return space_end;
  }
  const size_t most = Gpt2End(text, at);
  size_t end = at;
  while (end < most) {
    const Character character = CharacterAt(text, end);
    if (IsDigit(character)) break;
    end += character.bytes;
  }
  return end;
}

bool IsLineEnd(uint32_t code) { return code == '\r' || code == '\n'; }

// Returns the end of white space, which is behind the last line end in it, if it has one.
size_t LinesOrSpaceEnd(std::string_view text, size_t at) {
  const size_t end = RunEnd(text, at, CharacterClass::kSpace);
  const size_t line_end = text.substr(at, end - at).find_last_of("\r\n");
  return line_end == std::string_view::npos ? SpaceEnd(text, at) : at + line_end + 1;
}

// Returns the end of punctuation, or of white space. `closing` are bytes that end punctuation.
size_t PunctuationOrSpaceEnd(std::string_view text, size_t at, std::string_view closing) {
  const size_t body = text[at] == ' ' ? at + 1 : at;
  if (body == text.size() || CharacterAt(text, body).kind != CharacterClass::kOther) {
    return LinesOrSpaceEnd(text, at);
  }
  const size_t end = RunEnd(text, body, CharacterClass::kOther);
  return std::min(text.find_first_not_of(closing, end), text.size());
}

// Returns whether a character may stand before a word's letters.
bool MayPrecede(const Character& character) {
  return character.kind != CharacterClass::kLetter && character.kind != CharacterClass::kNumber &&
         !IsLineEnd(character.code);
}

size_t NumberEnd(std::string_view text, size_t at, int most_digits) {
  for (int digits = 0; digits < most_digits && at < text.size(); ++digits) {
    const Character character = CharacterAt(text, at);
    if (character.kind != CharacterClass::kNumber) break;
    at += character.bytes;
  }
  return at;
}

size_t UncasedEnd(std::string_view text, size_t at, int most_digits) {
  const size_t contraction = AnyContractionBytes(text.substr(at));
  if (contraction > 0) return at + contraction;
  const Character first = CharacterAt(text, at);
  if (first.kind == CharacterClass::kNumber) return NumberEnd(text, at, most_digits);
  const size_t next = at + first.bytes;
  const size_t end = RunEnd(text, next, CharacterClass::kLetter);
  const bool has_letters = end > next && MayPrecede(first);
  if (first.kind == CharacterClass::kLetter || has_letters) return end;
  return PunctuationOrSpaceEnd(text, at, "\r\n");
}

// Capitals and then small letters; letters without case, and marks, are both. Ends are `at` for a
// part that is not there.
struct CasedRun {
  size_t capitals;  // end of [U]*
  size_t either;    // end of the last character in it that is also one of [l]
  size_t small;     // end of [l]+ behind it
};

CasedRun CasedRunAt(std::string_view text, size_t at) {
  CasedRun run = {at, at, at};
  while (run.capitals < text.size()) {
    const Character character = CharacterAt(text, run.capitals);
    const Case kind = CaseOf(character);
    if (kind != Case::kCapital && kind != Case::kEither) break;
    run.capitals += character.bytes;
    if (kind == Case::kEither) run.either = run.capitals;
  }
  size_t end = run.capitals;
  while (end < text.size()) {
    const Character character = CharacterAt(text, end);
    const Case kind = CaseOf(character);
    if (kind != Case::kSmall && kind != Case::kEither) break;
    end += character.bytes;
  }
  run.small = end > run.capitals ? end : at;
  return run;
}

// Tries the pattern's first two alternatives, each with a preceding character and then without, in
// the order of a backtracking search. [U]* gives back what [l]+ needs: as little as it can.
size_t CasedEnd(std::string_view text, size_t at) {
  const Character first = CharacterAt(text, at);
  if (first.kind == CharacterClass::kNumber) return at + first.bytes;
  const size_t next = at + first.bytes;
  const bool may_precede = MayPrecede(first);
  const CasedRun behind = may_precede ? CasedRunAt(text, next) : CasedRun{next, next, next};
  const CasedRun here = CasedRunAt(text, at);
  for (const size_t end : {behind.small, behind.either}) {
    if (end > next) return end;
  }
  for (const size_t end : {here.small, here.either}) {
    if (end > at) return end;
  }
  if (behind.capitals > next) return behind.capitals;
  if (here.capitals > at) return here.capitals;
  return PunctuationOrSpaceEnd(text, at, "\r\n/");
}

}  // namespace

size_t WordEnd(WordRule rule, std::string_view text, size_t at) {
  switch (rule) {
    case WordRule::kGpt2:
      return Gpt2End(text, at);
    case WordRule::kDigitsApart:
      return DigitsApartEnd(text, at);
    case WordRule::kThreeDigits:
      return UncasedEnd(text, at, /*most_digits=*/3);
    case WordRule::kOneDigit:
      return UncasedEnd(text, at, /*most_digits=*/1);
    case WordRule::kCased:
      break;
  }
  return CasedEnd(text, at);
}

}  // namespace thinwire
