#include "data/bpe.h"

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/annotated.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/byte_spelling.h"
#include "data/official.h"
#include "data/words.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

constexpr size_t kMaxVocabulary = 1 << 24;

absl::Status Bad(const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat("vocabulary: ", problem));
}

}  // namespace

absl::StatusOr<BpeFiles> ReadBpeFiles(const std::string& dir, bool verify) {
  const OfficialData& official = OfficialDataOf("gpt2-bpe");
  std::error_code ignored;  // reading reports a missing folder
  const bool hugging_face = std::filesystem::exists(dir + "/vocab.json", ignored) &&
                            !std::filesystem::exists(dir + "/encoder.json", ignored);
  const std::string vocabulary = dir + (hugging_face ? "/vocab.json" : "/encoder.json");
  const std::string merges = dir + (hugging_face ? "/merges.txt" : "/vocab.bpe");
  BpeFiles files;
  ASSIGN_OR_RETURN(files.vocabulary, ReadDataFile(vocabulary, official.name));
  ASSIGN_OR_RETURN(files.merges, ReadDataFile(merges, official.name));
  if (!verify) return files;
  RETURN_IF_ERROR(CheckOfficial(official.files[0], vocabulary, files.vocabulary));
  RETURN_IF_ERROR(CheckOfficial(official.files[1], merges, files.merges));
  return files;
}

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::Load(const std::string& dir, bool verify,
                                               EndOfText end_of_text) {
  ASSIGN_OR_RETURN(const BpeFiles files, ReadBpeFiles(dir, verify));
  return Annotated(Parse(files.vocabulary, files.merges, end_of_text), dir);
}

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::Parse(std::string_view vocabulary,
                                                std::string_view merges, EndOfText end_of_text) {
  std::unique_ptr<Bpe> bpe(new Bpe);
  ASSIGN_OR_RETURN(const Ids ids, bpe->AddTokens(vocabulary, end_of_text));
  RETURN_IF_ERROR(bpe->AddMerges(merges, ids));
  bpe->digest_ =
      Sha256(absl::StrCat(Sha256(vocabulary), Sha256(merges), bpe->end_of_text_ ? kEndOfText : ""));
  return bpe;
}

absl::StatusOr<Bpe::Ids> Bpe::AddTokens(std::string_view vocabulary, EndOfText end_of_text) {
  const auto json = nlohmann::json::parse(vocabulary, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.empty() || json.size() > kMaxVocabulary) {
    return Bad("want a JSON object of tokens and their ids");
  }
  Ids ids;
  bytes_.resize(json.size());
  std::vector<bool> is_given(json.size());
  for (const auto& [token, id] : json.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= json.size()) {
      return Bad(
          absl::StrCat("\"", token, "\" has id ", id.dump(), ", want 0 to ", json.size() - 1));
    }
    const auto to = id.get<size_t>();
    if (is_given[to]) return Bad(absl::StrCat("id ", to, " stands there twice"));
    is_given[to] = true;
    const bool is_end = token == kEndOfText;
    if (is_end && end_of_text == EndOfText::kToken) end_of_text_ = static_cast<int32_t>(to);
    const std::optional<std::string> bytes = is_end ? token : BytesSpelled(token);
    if (!bytes) return Bad(absl::StrCat("\"", token, "\" is not spelled by bytes"));
    bytes_[to] = *bytes;
    if (!is_end) ids.emplace(*bytes, static_cast<int32_t>(to));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(std::string(1, static_cast<char>(byte)));
    if (found == ids.end()) {
      return Bad(absl::StrCat("byte 0x", absl::Hex(byte, absl::kZeroPad2), " has no token"));
    }
    id_of_byte_[byte] = found->second;
  }
  return ids;
}

absl::Status Bpe::AddMerges(std::string_view merges, const Ids& ids) {
  std::vector<bool> is_made(bytes_.size());
  for (const int32_t id : id_of_byte_) is_made[id] = true;
  int line = 0;
  const std::vector<std::string> lines = absl::StrSplit(std::string(merges), '\n');
  for (const std::string& text : lines) {
    ++line;
    if (text.empty() || (line == 1 && absl::StartsWith(text, "#version"))) continue;
    const auto bad = [&](const std::string& problem) {
      return Bad(absl::StrCat("merges, line ", line, ", \"", text, "\": ", problem));
    };
    const std::vector<std::string> parts = absl::StrSplit(text, ' ');
    if (parts.size() != 2) return bad("want two tokens");
    int32_t pair[2];
    std::string product;
    for (int i = 0; i < 2; ++i) {
      const std::optional<std::string> bytes = BytesSpelled(parts[i]);
      const auto found = bytes ? ids.find(*bytes) : ids.end();
      if (found == ids.end() || !is_made[found->second]) {
        return bad(absl::StrCat("\"", parts[i], "\" is no byte and no line before makes it"));
      }
      pair[i] = found->second;
      product += *bytes;
    }
    const auto made = ids.find(product);
    if (made == ids.end()) return bad("the vocabulary has no id for what it makes");
    if (is_made[made->second]) return bad("a line before makes the same token");
    is_made[made->second] = true;
    merges_.Add(pair[0], pair[1], made->second);
  }
  return absl::OkStatus();
}

void Bpe::EncodeWord(std::string_view word, std::vector<int32_t>* ids) const {
  const size_t first = ids->size();
  for (const char byte : word) ids->push_back(id_of_byte_[static_cast<uint8_t>(byte)]);
  merges_.Apply(first, ids);
}

void Bpe::EncodeText(std::string_view text, KnownWords* known, std::vector<int32_t>* ids) const {
  const auto encode = [this](std::string_view word, std::vector<int32_t>* to) {
    EncodeWord(word, to);
  };
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = WordEnd(WordRule::kGpt2, text, at);
    known->Append(text.substr(at, end - at), encode, ids);
  }
}

absl::StatusOr<std::vector<int32_t>> Bpe::Encode(std::string_view text) const {
  return EncodeNaming(text, {ByteRange{0, text.size()}});
}

absl::StatusOr<std::vector<int32_t>> Bpe::EncodeNaming(std::string_view text,
                                                       absl::Span<const ByteRange> named) const {
  constexpr std::string_view kName = kEndOfText;
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  KnownWords known;
  size_t done = 0;
  for (const ByteRange& range : end_of_text_ ? named : absl::Span<const ByteRange>()) {
    const std::string_view until = text.substr(0, range.end);
    for (size_t at = range.begin; (at = until.find(kName, at)) != until.npos; at = done) {
      EncodeText(text.substr(done, at - done), &known, &ids);
      ids.push_back(*end_of_text_);
      done = at + kName.size();
    }
  }
  EncodeText(text.substr(done), &known, &ids);
  return ids;
}

}  // namespace thinwire
