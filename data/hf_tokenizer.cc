#include "data/hf_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/annotated.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/byte_spelling.h"
#include "data/normal_form.h"
#include "data/unicode.h"
#include "data/words.h"

namespace thinwire {
namespace {

constexpr char kSpaceMark[] = "▁";  // what SentencePiece writes for a space

// Writes a text with marks for its spaces, and perhaps one in front, to *to.
void MarkSpaces(std::string_view text, bool is_prefixed, std::string* to) {
  to->clear();
  to->reserve(text.size() + text.size() / 2);
  if (is_prefixed) *to += kSpaceMark;
  for (size_t at = 0; at < text.size();) {
    const size_t space = std::min(text.find(' ', at), text.size());
    to->append(text, at, space - at);
    if (space < text.size()) *to += kSpaceMark;
    at = space + 1;
  }
}

bool BeginsWith(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Returns whether a token may go on behind the end of a line that a letter or a number ends.
bool IsLong(const AddedToken& token) {
  const bool ends_in_sign = absl::ascii_ispunct(static_cast<unsigned char>(token.content.back()));
  return token.content.find_first_of("\n\r", 1) != std::string::npos ||
         (token.takes_right && !ends_in_sign);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HfTokenizer>> HfTokenizer::Load(const std::string& dir,
                                                               Specials specials) {
  ASSIGN_OR_RETURN(HfFiles files, ReadHfFiles(dir));
  return Annotated(Of(std::move(files), specials), absl::StrCat(dir, "/", kTokenizerFile));
}

absl::StatusOr<std::unique_ptr<HfTokenizer>> HfTokenizer::Of(HfFiles files, Specials specials) {
  const TokenizerJson& json = files.tokenizer;
  std::unique_ptr<HfTokenizer> tokenizer(new HfTokenizer(json.rules, specials));
  tokenizer->texts_.resize(json.tokens.size());
  if (json.rules.units == Units::kBytes) {
    tokenizer->AddByteTexts(json);
  } else {
    tokenizer->AddCharacterTexts(json);
  }
  RETURN_IF_ERROR(tokenizer->AddMerges(json));
  tokenizer->AddAdded(json.added);
  tokenizer->unknown_ = json.unknown.value_or(kNoId);
  tokenizer->fuses_unknown_ = json.fuses_unknown;
  tokenizer->begin_of_text_ = files.begin_of_text;
  tokenizer->ends_of_text_ = std::move(files.ends_of_text);
  tokenizer->digest_ = Sha256(absl::StrCat(Sha256(files.contents[kTokenizerFile]),
                                           specials == Specials::kIds ? "ids" : ""));
  return tokenizer;
}

// A token that is not spelled by bytes, or is only added, stands for its own characters.
void HfTokenizer::AddByteTexts(const TokenizerJson& tokenizer) {
  id_of_byte_.fill(kNoId);
  std::vector<bool> is_spelled(texts_.size());
  for (size_t id = 0; id < texts_.size(); ++id) {
    const std::string& token = tokenizer.tokens[id];
    std::optional<std::string> bytes;
    if (tokenizer.is_piece[id]) bytes = BytesSpelled(token);
    is_spelled[id] = bytes.has_value();
    texts_[id] = bytes.value_or(token);
    if (!bytes || bytes->size() != 1) continue;
    id_of_byte_[static_cast<uint8_t>((*bytes)[0])] = static_cast<int32_t>(id);
  }
  for (size_t id = 0; tokenizer.ignores_merges && id < texts_.size(); ++id) {
    if (is_spelled[id]) whole_words_.emplace(texts_[id], static_cast<int32_t>(id));
  }
}

void HfTokenizer::AddCharacterTexts(const TokenizerJson& tokenizer) {
  absl::flat_hash_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < texts_.size(); ++id) {
    const std::string& token = tokenizer.tokens[id];
    texts_[id] = token;
    if (!tokenizer.is_piece[id] || token.empty()) continue;
    texts_[id] = absl::StrReplaceAll(token, {{kSpaceMark, " "}});
    ids.emplace(token, static_cast<int32_t>(id));
    const Character first = CharacterAt(token, 0);
    if (first.bytes == token.size()) {
      id_of_character_.emplace(first.code, static_cast<int32_t>(id));
    }
  }
  for (size_t byte = 0; byte < id_of_byte_.size(); ++byte) {
    id_of_byte_[byte] = ids.at(ByteToken(static_cast<uint8_t>(byte)));
    texts_[static_cast<size_t>(id_of_byte_[byte])] = std::string(1, static_cast<char>(byte));
  }
}

absl::Status HfTokenizer::AddMerges(const TokenizerJson& tokenizer) {
  std::vector<bool> is_byte(tokenizer.tokens.size()), is_known(tokenizer.tokens.size());
  for (const int32_t id : id_of_byte_) {
    if (id != kNoId) is_byte[static_cast<size_t>(id)] = true;
  }
  const bool has_bytes = rules_.units == Units::kBytes;
  if (!has_bytes) bonds_.emplace();
  merges_.Reserve(tokenizer.merges.size());
  for (size_t i = 0; i < tokenizer.merges.size(); ++i) {
    const TokenizerJson::Merge& merge = tokenizer.merges[i];
    if (!merges_.Add(merge.left, merge.right, merge.product)) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.merges[", i, "] stands there before, want each pair once"));
    }
    // Tokens of bytes may stand beside any character.
    if (!has_bytes && (is_byte[merge.left] || is_byte[merge.right])) bonds_.reset();
    if (!bonds_ || is_known[merge.product]) continue;
    is_known[merge.product] = true;
    bonds_->Add(tokenizer.tokens[merge.product]);
  }
  return absl::OkStatus();
}

void HfTokenizer::AddAdded(const std::vector<AddedToken>& added) {
  const bool has_words = rules_.units == Units::kBytes;
  may_be_cut_ = has_words ? std::none_of(added.begin(), added.end(), IsLong) : bonds_.has_value();
  std::string buffer;
  for (const AddedToken& token : added) {
    const bool stays_text = token.is_special && specials_ == Specials::kText;
    if (!has_words) {
      MarkSpaces(token.content, rules_.prefix != Prefix::kNone, &buffer);
      cuts_.AddToken(buffer, !stays_text && (token.takes_left || token.takes_right));
    }
    if (stays_text || !token.is_normalized) written_.Add(token, token.content);
    if (token.is_normalized) {
      normalized_.Add(token, Normalized(token.content, &buffer));
    } else {
      added_.Add(token, token.content);
    }
  }
}

bool HfTokenizer::IsPrefixed(const std::string& text) const {
  return rules_.prefix != Prefix::kNone && BeginsWith(text, " ");
}

std::string_view HfTokenizer::Normalized(std::string_view text, std::string* buffer) const {
  if (rules_.composes) return Composed(text, buffer);
  if (rules_.units == Units::kBytes || rules_.prefix == Prefix::kFirst) return text;
  MarkSpaces(text, rules_.prefix == Prefix::kAlways, buffer);
  return *buffer;
}

std::string_view HfTokenizer::Prepared(std::string_view text, bool is_first,
                                       std::string* buffer) const {
  if (rules_.prefix != Prefix::kFirst) return text;
  const bool has_space = BeginsWith(text, " ") || BeginsWith(text, kSpaceMark);
  MarkSpaces(text, is_first && !has_space, buffer);
  return *buffer;
}

// Pushes the token of the character at word[at], or of its bytes, and returns its end.
size_t HfTokenizer::PushCharacter(std::string_view word, size_t at,
                                  std::vector<int32_t>* ids) const {
  const Character character = CharacterAt(word, at);
  const auto found = id_of_character_.find(character.code);
  const size_t end = at + character.bytes;
  if (found != id_of_character_.end()) {
    ids->push_back(found->second);
    return end;
  }
  for (; at < end; ++at) ids->push_back(id_of_byte_[static_cast<uint8_t>(word[at])]);
  return end;
}

void HfTokenizer::PushBytes(std::string_view word, std::vector<int32_t>* ids) const {
  bool was_unknown = false;
  for (const char byte : word) {
    int32_t id = id_of_byte_[static_cast<uint8_t>(byte)];
    const bool is_unknown = id == kNoId;
    if (is_unknown) id = was_unknown && fuses_unknown_ ? kNoId : unknown_;
    if (id != kNoId) ids->push_back(id);
    was_unknown = is_unknown;
  }
}

void HfTokenizer::EncodeWord(std::string_view word, std::vector<int32_t>* ids) const {
  const auto whole = whole_words_.find(word);
  if (whole != whole_words_.end()) {
    ids->push_back(whole->second);
    return;
  }
  const size_t first = ids->size();
  if (rules_.units == Units::kBytes) {
    PushBytes(word, ids);
  } else {
    for (size_t at = 0; at < word.size();) at = PushCharacter(word, at, ids);
  }
  merges_.Apply(first, ids);
}

void HfTokenizer::EncodeWords(std::string_view text, Encoding* to) const {
  const auto encode = [this](std::string_view word, std::vector<int32_t>* ids) {
    EncodeWord(word, ids);
  };
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    if (rules_.units == Units::kBytes) {
      end = WordEnd(rules_.words, text, at);
    } else {
      end = bonds_ ? bonds_->PartEnd(text, at) : text.size();
    }
    to->known.Append(text.substr(at, end - at), encode, &to->ids);
  }
}

void HfTokenizer::EncodeNormalized(std::string_view text, bool is_first, Encoding* to) const {
  const char* const begin = text.data();
  for (const AddedTokens::Part& part : normalized_.Split(text)) {
    if (part.id != AddedTokens::kNoToken) {
      to->ids.push_back(part.id);
      continue;
    }
    to->buffers.emplace_back();
    EncodeWords(Prepared(part.text, is_first && part.text.data() == begin, &to->buffers.back()),
                to);
  }
}

void HfTokenizer::EncodePart(const AddedTokens::Part& part, bool is_first, Encoding* to) const {
  if (part.id != AddedTokens::kNoToken) {
    to->ids.push_back(part.id);
    return;
  }
  to->buffers.emplace_back();
  EncodeNormalized(Normalized(part.text, &to->buffers.back()), is_first, to);
}

absl::StatusOr<std::vector<int32_t>> HfTokenizer::Encode(std::string_view text) const {
  Encoding encoding;
  encoding.ids.reserve(text.size() / 4);
  for (const AddedTokens::Part& part : added_.Split(text)) {
    EncodePart(part, part.text.data() == text.data(), &encoding);
  }
  return std::move(encoding.ids);
}

size_t HfTokenizer::LastCut(std::string_view text) const {
  return bonds_ ? cuts_.Last(text, *bonds_) : Tokenizer::LastCut(text);
}

absl::StatusOr<std::vector<int32_t>> HfTokenizer::EncodeRest(std::string_view text) const {
  if (!bonds_) return Encode(text);
  Encoding encoding;
  encoding.ids.reserve(text.size() / 4);
  for (const AddedTokens::Part& part : added_.Split(text)) {
    const bool goes_on = part.text.data() == text.data() && part.id == AddedTokens::kNoToken;
    if (!goes_on || rules_.prefix != Prefix::kAlways) {
      EncodePart(part, /*is_first=*/false, &encoding);
      continue;
    }
    std::string& marked = encoding.buffers.emplace_back();
    MarkSpaces(part.text, /*is_prefixed=*/false, &marked);
    EncodeNormalized(marked, /*is_first=*/false, &encoding);
  }
  return std::move(encoding.ids);
}

std::vector<size_t> HfTokenizer::FirstsIn(const AddedTokens::Part& part, bool is_first,
                                          absl::Span<const size_t> places,
                                          absl::Span<const int32_t> ids) const {
  std::vector<size_t> firsts;
  if (places.empty() || places.back() == 0) return std::vector<size_t>(places.size());
  const std::vector<size_t> ends = TextEnds(ids);
  size_t begin = 0, bytes = 0;  // of the text that ids of what is in front of a place stand for
  for (const size_t place : places) {
    if (place > begin) {
      Encoding before;
      EncodePart({part.text.substr(begin, place - begin), part.id}, is_first && begin == 0,
                 &before);
      bytes += before.ids.empty() ? 0 : TextEnds(before.ids).back();
      // Only the first of these stretches has a space in front of it in the whole part.
      const bool is_prefixed = rules_.prefix == Prefix::kAlways && part.id == AddedTokens::kNoToken;
      if (is_prefixed && begin > 0 && bytes > 0) --bytes;
      begin = place;
    }
    firsts.push_back(FirstBehind(bytes, ends));
  }
  return firsts;
}

// Appends the ids of a text to the encoding, and returns them.
PassageIds HfTokenizer::EncodePassages(absl::Span<const Passage> passages, Encoding* to) const {
  std::string& whole = to->buffers.emplace_back();
  std::vector<size_t> begins;
  std::vector<ByteRange> formats;
  for (const Passage& passage : passages) {
    begins.push_back(whole.size());
    whole += passage.text;
    if (passage.is_format) formats.push_back({begins.back(), whole.size()});
  }
  PassageIds encoded;
  const size_t first = to->ids.size();
  for (const AddedTokens::Part& part : written_.Split(whole, formats)) {
    const auto at = static_cast<size_t>(part.text.data() - whole.data());
    const size_t of_part = to->ids.size();
    EncodePart(part, at == 0, to);
    std::vector<size_t> places;
    for (size_t next = encoded.firsts.size();
         next < begins.size() && begins[next] < at + part.text.size(); ++next) {
      places.push_back(begins[next] - at);
    }
    const auto ids = absl::MakeConstSpan(to->ids).subspan(of_part);
    for (const size_t place : FirstsIn(part, at == 0, places, ids)) {
      encoded.firsts.push_back(of_part - first + place);
    }
  }
  encoded.ids.assign(to->ids.begin() + static_cast<ptrdiff_t>(first), to->ids.end());
  encoded.firsts.resize(begins.size(), encoded.ids.size());
  return encoded;
}

absl::StatusOr<std::vector<PassageIds>> HfTokenizer::EncodeEach(
    absl::Span<const std::vector<Passage>> texts) const {
  Encoding encoding;
  std::vector<PassageIds> all;
  for (const std::vector<Passage>& passages : texts) {
    all.push_back(EncodePassages(passages, &encoding));
  }
  return all;
}

}  // namespace thinwire
