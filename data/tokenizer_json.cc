#include "data/tokenizer_json.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "data/json_files.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;
using IdOfPiece = absl::flat_hash_map<std::string_view, int32_t>;

constexpr int kMostNested = 64;  // levels; published files have less than ten
constexpr size_t kMostTokens = 1 << 24;

absl::Status Refused(const std::string& problem) { return absl::InvalidArgumentError(problem); }

std::string Quoted(std::string_view token) { return Printed(Json(std::string(token))); }

// Returns a member of an object; null if it is absent or `json` is no object.
const Json& At(const Json& json, const char* key) {
  static const Json* const null = new Json;
  if (!json.is_object()) return *null;
  const auto found = json.find(key);
  return found == json.end() ? *null : *found;
}

bool IsTrue(const Json& json, const char* key) { return At(json, key) == true; }

// Checks nesting before the parser, as comparing and printing recurse.
absl::Status CheckNesting(std::string_view text) {
  int depth = 0;
  bool is_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_string) {
      if (c == '\\') ++at;
      if (c == '"') is_string = false;
      continue;
    }
    if (c == '"') is_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMostNested) {
      return Refused(absl::StrCat("byte ", at, " is nested more than ", kMostNested, " times"));
    }
  }
  return absl::OkStatus();
}

bool IsAbsentOr(const Json& value, const Json& harmless) {
  return value.is_null() || value == harmless;
}

absl::Status CheckModel(const Json& model) {
  const Json& type = At(model, "type");
  if (type != "BPE" && !(type.is_null() && At(model, "merges").is_array())) {
    return Refused(
        absl::StrCat("model.type is ", Printed(type), ", want \"BPE\"",
                     type == "WordPiece" ? "; data.tokens: word_piece reads vocab.txt" : ""));
  }
  const std::pair<const char*, Json> absent[] = {
      {"dropout", 0.0}, {"continuing_subword_prefix", ""}, {"end_of_word_suffix", ""}};
  for (const auto& [key, harmless] : absent) {
    if (IsAbsentOr(At(model, key), harmless)) continue;
    return Refused(absl::StrCat("model.", key, " is ", Printed(At(model, key)), ", want null"));
  }
  for (const char* const key : {"vocab", "merges"}) {
    const Json& value = At(model, key);
    if (key == std::string_view("vocab") ? value.is_object() : value.is_array()) continue;
    return Refused(absl::StrCat("model.", key, " is ", value.type_name(), ", want ",
                                key == std::string_view("vocab") ? "a map" : "a list"));
  }
  return absl::OkStatus();
}

// Puts a token at its id.
absl::Status Place(const std::string& token, const Json& id, std::vector<bool>* is_placed,
                   TokenizerJson* to) {
  const size_t size = to->tokens.size();
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= size) {
    return Refused(absl::StrCat(Quoted(token), " has id ", Printed(id), ", want 0 to ", size - 1,
                                ", one of each token"));
  }
  const auto at = id.get<size_t>();
  if ((*is_placed)[at]) {
    return Refused(absl::StrCat("id ", at, " is that of ", Quoted(to->tokens[at]), " and of ",
                                Quoted(token), ", want one token"));
  }
  (*is_placed)[at] = true;
  to->tokens[at] = token;
  return absl::OkStatus();
}

absl::StatusOr<AddedToken> AddedFrom(const Json& json) {
  const Json& content = At(json, "content");
  const Json& id = At(json, "id");
  if (!content.is_string() || content == "" || !id.is_number_unsigned()) {
    return Refused(absl::StrCat("added_tokens has ", Printed(json),
                                ", want an id and a content of at least one character"));
  }
  if (IsTrue(json, "single_word")) {
    return Refused(
        absl::StrCat("added token ", Printed(content), " has single_word true, want false"));
  }
  AddedToken token;
  token.content = content.get<std::string>();
  token.is_special = IsTrue(json, "special");
  token.takes_left = IsTrue(json, "lstrip");
  token.takes_right = IsTrue(json, "rstrip");
  token.is_normalized = IsTrue(json, "normalized");
  return token;
}

// Returns how many tokens there are: those of the model, and added ones that it has not.
size_t CountTokens(const Json& vocabulary, const Json& added) {
  size_t count = vocabulary.size();
  for (const Json& json : added) {
    const Json& content = At(json, "content");
    if (content.is_string() && !vocabulary.contains(content.get<std::string>())) ++count;
  }
  return count;
}

absl::Status AddTokens(const Json& file, TokenizerJson* to) {
  const Json& vocabulary = At(At(file, "model"), "vocab");
  static const Json* const none = new Json(Json::array());
  const Json& added = At(file, "added_tokens").is_array() ? At(file, "added_tokens") : *none;
  const size_t count = CountTokens(vocabulary, added);
  if (count == 0 || count > kMostTokens) {
    return Refused(absl::StrCat("it has ", count, " tokens, want 1 to ", kMostTokens));
  }
  to->tokens.resize(count);
  std::vector<bool> is_placed(count);
  for (const auto& [token, id] : vocabulary.items()) {
    RETURN_IF_ERROR(Place(token, id, &is_placed, to));
  }
  to->is_piece = is_placed;
  for (const Json& json : added) {
    ASSIGN_OR_RETURN(AddedToken token, AddedFrom(json));
    const Json& id = At(json, "id");
    const Json& known = At(vocabulary, token.content.c_str());
    if (known.is_null()) RETURN_IF_ERROR(Place(token.content, id, &is_placed, to));
    if (!known.is_null() && known != id) {
      return Refused(absl::StrCat("added token ", Quoted(token.content), " has id ", Printed(id),
                                  ", but ", Printed(known), " in model.vocab"));
    }
    token.id = id.get<int32_t>();
    to->added.push_back(std::move(token));
  }
  const auto gap = std::find(is_placed.begin(), is_placed.end(), false);
  if (gap == is_placed.end()) return absl::OkStatus();
  return Refused(
      absl::StrCat("id ", gap - is_placed.begin(), " has no token, want one for each of ", count));
}

// Checks that no character is lost.
absl::Status CheckFallback(const Json& model) {
  if (!IsTrue(model, "byte_fallback")) {
    return Refused(absl::StrCat("model.byte_fallback is ", Printed(At(model, "byte_fallback")),
                                ", want true: other characters would be lost"));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = ByteToken(static_cast<uint8_t>(byte));
    if (At(model, "vocab").contains(token)) continue;
    return Refused(absl::StrCat("model.vocab lacks ", token, ", want a token for each byte"));
  }
  return absl::OkStatus();
}

// An empty name, which old files have, stands for none.
absl::Status AddUnknown(const Json& model, TokenizerJson* to) {
  const Json& name = At(model, "unk_token");
  to->fuses_unknown = IsTrue(model, "fuse_unk");
  if (IsAbsentOr(name, "")) return absl::OkStatus();
  const Json& id =
      name.is_string() ? At(At(model, "vocab"), name.get<std::string>().c_str()) : name;
  if (!id.is_number_unsigned()) {
    return Refused(absl::StrCat("model.unk_token is ", Printed(name),
                                ", want null or a token of model.vocab"));
  }
  to->unknown = id.get<int32_t>();
  return absl::OkStatus();
}

// Returns a merge's two tokens, which stand as "a b" or, in newer files, as ["a", "b"].
absl::StatusOr<std::pair<std::string, std::string>> PairFrom(const Json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (merge.is_string()) {
    std::vector<std::string> parts = absl::StrSplit(merge.get_ref<const std::string&>(), ' ');
    if (parts.size() == 2) return std::pair(std::move(parts[0]), std::move(parts[1]));
  }
  return Refused(absl::StrCat("is ", Printed(merge), ", want two tokens"));
}

absl::StatusOr<int32_t> IdIn(const IdOfPiece& ids, const std::string& token) {
  const auto found = ids.find(token);
  if (found != ids.end()) return found->second;
  return Refused(absl::StrCat("has ", Quoted(token), ", want a token of model.vocab"));
}

absl::StatusOr<TokenizerJson::Merge> MergeFrom(const Json& json, const IdOfPiece& ids) {
  ASSIGN_OR_RETURN(const auto pair, PairFrom(json));
  TokenizerJson::Merge merge;
  ASSIGN_OR_RETURN(merge.left, IdIn(ids, pair.first));
  ASSIGN_OR_RETURN(merge.right, IdIn(ids, pair.second));
  ASSIGN_OR_RETURN(merge.product, IdIn(ids, absl::StrCat(pair.first, pair.second)));
  return merge;
}

absl::Status AddMerges(const Json& merges, TokenizerJson* to) {
  IdOfPiece ids;
  ids.reserve(to->tokens.size());
  for (size_t id = 0; id < to->tokens.size(); ++id) {
    if (to->is_piece[id]) ids.emplace(to->tokens[id], static_cast<int32_t>(id));
  }
  to->merges.reserve(merges.size());
  for (const Json& json : merges) {
    auto merge = MergeFrom(json, ids);
    if (!merge.ok()) {
      return Refused(
          absl::StrCat("model.merges[", to->merges.size(), "] ", merge.status().message()));
    }
    to->merges.push_back(*merge);
  }
  return absl::OkStatus();
}

// Returns the name of the special token with which a template begins; nothing if it has none.
std::optional<std::string> BeginningOf(const Json& processor) {
  for (const Json& each : At(processor, "processors")) {
    if (const auto name = BeginningOf(each)) return name;
  }
  const Json& single = At(processor, "single");
  if (At(processor, "type") != "TemplateProcessing" || !single.is_array() || single.empty()) {
    return std::nullopt;
  }
  const Json& name = At(At(single[0], "SpecialToken"), "id");
  if (!name.is_string()) return std::nullopt;
  return name.get<std::string>();
}

absl::Status AddBeginning(const Json& processor, TokenizerJson* to) {
  const std::optional<std::string> name = BeginningOf(processor);
  if (!name) return absl::OkStatus();
  const auto found = std::find(to->tokens.begin(), to->tokens.end(), *name);
  if (found == to->tokens.end()) {
    return Refused(absl::StrCat("post_processor puts ", Quoted(*name),
                                " in front of a text, want a token of the vocabulary"));
  }
  to->beginning = static_cast<int32_t>(found - to->tokens.begin());
  return absl::OkStatus();
}

}  // namespace

std::string ByteToken(uint8_t byte) { return absl::StrFormat("<0x%02X>", byte); }

absl::StatusOr<TokenizerJson> ParseTokenizerJson(std::string_view text) {
  RETURN_IF_ERROR(CheckNesting(text));
  const Json file = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object()) {
    return Refused(absl::StrCat("is ", file.is_discarded() ? "broken JSON" : file.type_name(),
                                ", want a JSON map"));
  }
  TokenizerJson tokenizer;
  const Json& model = At(file, "model");
  RETURN_IF_ERROR(CheckModel(model));
  ASSIGN_OR_RETURN(tokenizer.rules, RulesOf(At(file, "normalizer"), At(file, "pre_tokenizer")));
  tokenizer.ignores_merges = IsTrue(model, "ignore_merges");
  if (tokenizer.ignores_merges && tokenizer.rules.units == Units::kCharacters) {
    return Refused(absl::StrCat("model.ignore_merges is true with the rules of ",
                                tokenizer.rules.name, ", want false"));
  }
  RETURN_IF_ERROR(AddTokens(file, &tokenizer));
  if (tokenizer.rules.units == Units::kCharacters) RETURN_IF_ERROR(CheckFallback(model));
  RETURN_IF_ERROR(AddUnknown(model, &tokenizer));
  RETURN_IF_ERROR(AddMerges(At(model, "merges"), &tokenizer));
  RETURN_IF_ERROR(AddBeginning(At(file, "post_processor"), &tokenizer));
  return tokenizer;
}

}  // namespace thinwire
