#include "data/vocabulary_files.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/status.h"
#include "data/bpe.h"
#include "data/bytes.h"
#include "data/characters.h"
#include "data/hf_files.h"
#include "data/hf_tokenizer.h"
#include "data/json_files.h"
#include "data/vocabulary_folder.h"
#include "data/word_piece.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;

constexpr char kTokens[] = "vocab.json", kMerges[] = "merges.txt";

std::string TextAt(const Json& json, const char* key) {
  const Json value = json.value(key, Json());
  return value.is_string() ? value.get<std::string>() : "";
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenBpe(const std::string& dir, const Json& about) {
  EndOfText end_of_text{};
  const absl::Status known = FromName(TextAt(about, "end_of_text"), &end_of_text);
  if (!known.ok()) return Annotated(known, absl::StrCat(dir, "/", kVocabularyFile));
  return Bpe::Load(dir, /*verify=*/false, end_of_text);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenWordPiece(const std::string& dir,
                                                         const Json& about) {
  const Json lowercase = about.value("lowercase", Json());
  if (lowercase.is_boolean()) return WordPiece::Load(dir, lowercase.get<bool>());
  return absl::InvalidArgumentError(absl::StrCat(dir, "/", kVocabularyFile, ": lowercase is ",
                                                 lowercase.dump(), ", want true or false"));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHf(const std::string& dir, const Json& about) {
  Specials specials{};
  const absl::Status known = FromName(TextAt(about, "specials"), &specials);
  if (!known.ok()) return Annotated(known, absl::StrCat(dir, "/", kVocabularyFile));
  return HfTokenizer::Load(dir, specials);
}

// Returns the ids of tokens as a published file spells them: those of vocab.json, or of
// tokenizer.json with its added tokens. Nothing if the folder has neither.
absl::StatusOr<std::optional<Json>> PublishedIds(const std::string& dir, std::string* path) {
  *path = absl::StrCat(dir, "/", kTokens);
  if (IsThere(*path)) return ReadJsonMap(*path);
  *path = absl::StrCat(dir, "/", kTokenizerFile);
  if (!IsThere(*path)) return std::nullopt;
  ASSIGN_OR_RETURN(const Json file, ReadJsonMap(*path));
  const Json model = file.value("model", Json());
  if (!model.is_object() || TextAt(model, "type") != "BPE") return std::nullopt;
  Json ids = model.value("vocab", Json());
  if (!ids.is_object()) return std::nullopt;
  for (const Json& added : file.value("added_tokens", Json::array())) {
    if (added.is_object() && added.contains("id")) ids[TextAt(added, "content")] = added["id"];
  }
  return ids;
}

std::string Quoted(const std::string& token) {
  return Json(token).dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status Differs(const std::string& id_here, const std::string& there,
                     const std::string& advice) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the data's vocabulary is not the checkpoint's: ", id_here, ", but ", there, "; ", advice));
}

// Checks against the vocab.txt of other programs, token by token.
absl::Status CheckPublishedPieces(const std::string& dir, const DataOptions& options) {
  const std::string path = absl::StrCat(dir, "/", kWordPieceFile);
  const std::string advice = "want data.vocabulary: a folder with the checkpoint's vocab.txt";
  if (options.text.tokens != TokenKind::kWordPiece) {
    return Differs(absl::StrCat("data.tokens is ", Name(options.text.tokens)),
                   absl::StrCat(path, " has word pieces"), advice);
  }
  const bool lowercase = options.text.lowercase;
  ASSIGN_OR_RETURN(const auto theirs, WordPiece::Load(dir, lowercase));
  ASSIGN_OR_RETURN(const auto ours, WordPiece::Load(options.text.vocabulary, lowercase));
  for (int32_t id = 0; id < ours->vocabulary(); ++id) {
    const std::string there = id < theirs->vocabulary() ? Quoted(theirs->token(id)) : "none";
    if (Quoted(ours->token(id)) == there) continue;
    return Differs(
        absl::StrCat("id ", id, " is ", Quoted(ours->token(id)), " in ", options.text.vocabulary),
        absl::StrCat(there, " in ", path), advice);
  }
  return absl::OkStatus();
}

// Returns the ids of the options' tokens, which are byte pairs, as their files spell them. Nothing
// if the file is broken; whoever reads the text reports it.
absl::StatusOr<Json> OwnIds(const DataOptions& options) {
  if (options.text.tokens == TokenKind::kBpe) {
    ASSIGN_OR_RETURN(const BpeFiles files, ReadBpeFiles(options.text.vocabulary, options.verify));
    return Json::parse(files.vocabulary, nullptr, /*allow_exceptions=*/false);
  }
  ASSIGN_OR_RETURN(const HfFiles files, ReadHfFiles(options.text.vocabulary));
  Json ids = Json::object();
  for (size_t id = 0; id < files.tokenizer.tokens.size(); ++id) {
    ids[files.tokenizer.tokens[id]] = id;
  }
  return ids;
}

std::string AdviceFor(const std::string& dir) {
  if (IsThere(absl::StrCat(dir, "/", kTokenizerFile))) {
    return absl::StrCat("want data.tokens: hf and data.vocabulary: ", dir);
  }
  return absl::StrCat("want data.tokens: bpe and data.vocabulary: a folder with the checkpoint's ",
                      kTokens, " and ", kMerges, " (data.verify: false unless it is GPT-2's own)");
}

// Checks against files of other programs, which have byte pairs, token by token in their spelling.
absl::Status CheckPublished(const std::string& dir, const DataOptions& options) {
  if (IsThere(absl::StrCat(dir, "/", kWordPieceFile))) return CheckPublishedPieces(dir, options);
  std::string path;
  ASSIGN_OR_RETURN(const std::optional<Json> theirs, PublishedIds(dir, &path));
  if (!theirs) return absl::OkStatus();
  const std::string advice = AdviceFor(dir);
  if (options.text.tokens != TokenKind::kBpe && options.text.tokens != TokenKind::kHf) {
    return Differs(absl::StrCat("data.tokens is ", Name(options.text.tokens)),
                   absl::StrCat(path, " has byte pairs"), advice);
  }
  ASSIGN_OR_RETURN(const Json ours, OwnIds(options));
  for (const auto& [token, id] : ours.items()) {
    const Json other = theirs->value(token, Json());
    if (other == id || !ours.is_object()) continue;
    return Differs(absl::StrCat("token ", Quoted(token), " has id ", id.dump(), " in ",
                                options.text.vocabulary),
                   absl::StrCat(other.is_null() ? "none" : other.dump(), " in ", path), advice);
  }
  return absl::OkStatus();
}

absl::Status CheckOwn(const std::string& dir, const Tokenizer& theirs, const Tokenizer& ours) {
  if (ours.digest() == theirs.digest()) return absl::OkStatus();
  const std::string path = absl::StrCat(dir, "/", kVocabularyFile);
  const std::string advice =
      "want the tokens that the checkpoint was trained with (data.tokens, and data.vocabulary or a "
      "text of the same characters)";
  if (ours.vocabulary() != theirs.vocabulary()) {
    return Differs(absl::StrCat("it has ", ours.vocabulary(), " tokens"),
                   absl::StrCat(theirs.vocabulary(), " by ", path), advice);
  }
  for (int32_t id = 0; id < ours.vocabulary(); ++id) {
    ASSIGN_OR_RETURN(const std::string here, ours.Decode({id}));
    ASSIGN_OR_RETURN(const std::string there, theirs.Decode({id}));
    if (here == there) continue;
    return Differs(absl::StrCat("id ", id, " is ", Quoted(here)),
                   absl::StrCat(Quoted(there), " by ", path), advice);
  }
  return absl::OkStatus();  // the same tokens, but read differently
}

// Puts the folder of the vocabulary in place of its name in the hub.
absl::StatusOr<DataOptions> WithFolder(DataOptions options) {
  ASSIGN_OR_RETURN(options.text.vocabulary, VocabularyFolder(options.text));
  return options;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> VocabularyFiles(const DataOptions& asked) {
  ASSIGN_OR_RETURN(const DataOptions options, WithFolder(asked));
  Json about = {{"tokens", Name(options.text.tokens)}};
  std::map<std::string, std::string> files;
  if (options.text.tokens == TokenKind::kIds) return files;
  if (options.text.tokens == TokenKind::kBpe) {
    ASSIGN_OR_RETURN(BpeFiles bpe, ReadBpeFiles(options.text.vocabulary, options.verify));
    about["end_of_text"] = Name(options.text.end_of_text);
    files[kTokens] = std::move(bpe.vocabulary);
    files[kMerges] = std::move(bpe.merges);
  } else if (options.text.tokens == TokenKind::kWordPiece) {
    RETURN_IF_ERROR(LoadTokenizer(options).status());
    ASSIGN_OR_RETURN(files[kWordPieceFile],
                     ReadFile(absl::StrCat(options.text.vocabulary, "/", kWordPieceFile)));
    about["lowercase"] = options.text.lowercase;
  } else if (options.text.tokens == TokenKind::kHf) {
    ASSIGN_OR_RETURN(HfFiles hf, ReadHfFiles(options.text.vocabulary));
    about["specials"] = Name(options.text.specials);
    files = std::move(hf.contents);
    // A run's config.json is another one than that which may have named these ends.
    const bool names_no_ends = files.count(kGenerationConfig) == 0 && !hf.ends_of_text.empty();
    if (names_no_ends) files[kGenerationConfig] = Json{{"eos_token_id", hf.ends_of_text}}.dump();
  } else if (options.text.tokens == TokenKind::kCharacters) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(options));
    std::string characters;
    for (int32_t id = 0; id < tokenizer->vocabulary(); ++id) {
      ASSIGN_OR_RETURN(const std::string character, tokenizer->Decode({id}));
      characters += character;
    }
    about["characters"] = characters;
  }
  files[kVocabularyFile] = about.dump() + "\n";
  return files;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenVocabulary(const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kVocabularyFile);
  ASSIGN_OR_RETURN(const Json about, ReadJsonMap(path));
  TokenKind kind{};
  const absl::Status known = FromName(TextAt(about, "tokens"), &kind);
  if (!known.ok()) return Annotated(known, path);
  if (kind == TokenKind::kBytes) return std::make_unique<Bytes>();
  if (kind == TokenKind::kBpe) return OpenBpe(dir, about);
  if (kind == TokenKind::kWordPiece) return OpenWordPiece(dir, about);
  if (kind == TokenKind::kHf) return OpenHf(dir, about);
  auto characters = Characters::Of(TextAt(about, "characters"));
  if (!characters.ok()) return Annotated(characters.status(), path);
  if ((*characters)->vocabulary() > 0) return characters;
  return absl::InvalidArgumentError(absl::StrCat(path, ": has no characters, want at least one"));
}

absl::Status CheckVocabulary(const std::string& dir, const DataOptions& asked) {
  if (asked.text.tokens == TokenKind::kIds) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DataOptions options, WithFolder(asked));
  if (!IsThere(absl::StrCat(dir, "/", kVocabularyFile))) return CheckPublished(dir, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> theirs, OpenVocabulary(dir));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> ours, LoadTokenizer(options));
  return CheckOwn(dir, *theirs, *ours);
}

}  // namespace thinwire
