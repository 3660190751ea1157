#include "coordinator/data/token_files.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/path.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "base/text.h"
#include "data/bpe.h"
#include "data/hf_files.h"
#include "data/hf_tokenizer.h"
#include "data/unicode.h"
#include "data/vocabulary_files.h"

namespace thinwire {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

// Tokens are numbered within a word with 31 bits.
constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;
constexpr int32_t kNarrowIds = 1 << 16;

bool IsThere(const std::string& dir, const char* name) {
  std::error_code ignored;  // reading reports an unreadable file
  return std::filesystem::exists(absl::StrCat(dir, "/", name), ignored);
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", bytes, " bytes, want at most ", kMostBytes));
  }
  ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  RETURN_IF_ERROR(CheckNoStandIn(path, text));
  RETURN_IF_ERROR(CheckNoArchive(path, text));
  text.erase(0, ByteOrderMarkBytes(text));
  return text;
}

std::string Shown(const HfFiles& files, int32_t id) {
  return absl::StrCat(id, " ", PrintableLine(files.tokenizer.tokens[static_cast<size_t>(id)]));
}

std::string Described(const HfFiles& files) {
  const TokenizerJson& tokenizer = files.tokenizer;
  size_t specials = 0;
  std::string added;
  for (const AddedToken& token : tokenizer.added) {
    specials += token.is_special ? 1 : 0;
    absl::StrAppend(&added, "  ", Shown(files, token.id), token.is_special ? "" : ", in any text",
                    "\n");
  }
  std::string ends;
  for (const int32_t id : files.ends_of_text) {
    absl::StrAppend(&ends, ends.empty() ? "" : ", ", Shown(files, id));
  }
  return absl::StrCat(
      "rules of ", tokenizer.rules.name, ", ",
      tokenizer.rules.units == Units::kBytes ? "merges of bytes" : "merges of characters", "\n",
      tokenizer.tokens.size(), " ids, ", tokenizer.merges.size(), " merges\n",
      "in front of a text: ", files.begin_of_text ? Shown(files, *files.begin_of_text) : "nothing",
      "\n", "end of a text: ", ends.empty() ? "not known" : ends, "\n", tokenizer.added.size(),
      " added tokens, ", specials, " of them special\n", added);
}

template <typename Id>
std::string Packed(const std::vector<int32_t>& ids) {
  std::string bytes(ids.size() * sizeof(Id), '\0');
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<Id>(ids[i]);
    std::memcpy(&bytes[i * sizeof(Id)], &id, sizeof(Id));
  }
  return bytes;
}

// Ids beyond int32_t become -1, which is no id.
template <typename Id>
std::vector<int32_t> Unpacked(std::string_view bytes) {
  std::vector<int32_t> ids(bytes.size() / sizeof(Id));
  for (size_t i = 0; i < ids.size(); ++i) {
    Id id = 0;
    std::memcpy(&id, &bytes[i * sizeof(Id)], sizeof(Id));
    ids[i] = id > INT32_MAX ? -1 : static_cast<int32_t>(id);
  }
  return ids;
}

bool IsNarrow(const Tokenizer& tokenizer) { return tokenizer.vocabulary() <= kNarrowIds; }

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& dir,
                                                         Specials specials) {
  if (IsHubId(dir)) {
    ASSIGN_OR_RETURN(const std::string folder, HubFolder(dir));
    return OpenTokenizer(folder, specials);
  }
  if (IsThere(dir, kVocabularyFile)) return OpenVocabulary(dir);
  const bool is_gpt2 = IsThere(dir, "vocab.json") && IsThere(dir, "merges.txt");
  if (is_gpt2 && !IsThere(dir, kTokenizerFile)) {
    return Bpe::Load(dir, /*verify=*/false, EndOfText::kToken);
  }
  return HfTokenizer::Load(dir, specials);
}

absl::StatusOr<std::string> DescribeTokenizer(const std::string& dir) {
  if (IsHubId(dir)) {
    ASSIGN_OR_RETURN(const std::string folder, HubFolder(dir));
    return DescribeTokenizer(folder);
  }
  if (!IsThere(dir, kTokenizerFile)) {
    ASSIGN_OR_RETURN(const auto tokenizer, OpenTokenizer(dir, Specials::kText));
    return absl::StrCat(tokenizer->vocabulary(), " ids by ",
                        IsThere(dir, kVocabularyFile) ? kVocabularyFile : "vocab.json", "\n");
  }
  ASSIGN_OR_RETURN(const HfFiles files, ReadHfFiles(dir));
  return Described(files);
}

absl::StatusOr<std::string> EncodeFile(const std::string& path, const Tokenizer& tokenizer,
                                       const std::string& out) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Annotated(tokenizer.Encode(text), path));
  const bool is_narrow = IsNarrow(tokenizer);
  RETURN_IF_ERROR(ReplaceFile(out, is_narrow ? Packed<uint16_t>(ids) : Packed<uint32_t>(ids)));
  const double bytes = static_cast<double>(text.size());
  return absl::StrFormat("%s: %d ids of %d bits, %.4g bytes of text each\n", out, ids.size(),
                         is_narrow ? 16 : 32,
                         ids.empty() ? 0.0 : bytes / static_cast<double>(ids.size()));
}

absl::StatusOr<std::string> DecodeFile(const std::string& path, const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const size_t width = IsNarrow(tokenizer) ? sizeof(uint16_t) : sizeof(uint32_t);
  if (bytes.size() % width != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has ", bytes.size(),
                                                   " bytes, want ids of ", width, " bytes for ",
                                                   tokenizer.vocabulary(), " ids"));
  }
  const std::vector<int32_t> ids =
      IsNarrow(tokenizer) ? Unpacked<uint16_t>(bytes) : Unpacked<uint32_t>(bytes);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (0 <= ids[i] && ids[i] < tokenizer.vocabulary()) continue;
    uint32_t id = 0;
    std::memcpy(&id, &bytes[i * width], width);
    return absl::InvalidArgumentError(absl::StrCat(path, ": number ", i, " is ", id, ", want 0 to ",
                                                   tokenizer.vocabulary() - 1,
                                                   ", an id of the tokenizer"));
  }
  return tokenizer.Decode(ids);
}

}  // namespace thinwire
