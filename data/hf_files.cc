#include "data/hf_files.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "data/json_files.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;

constexpr char kTokenizerConfig[] = "tokenizer_config.json", kAddedFile[] = "added_tokens.json",
               kVocabFile[] = "vocab.json", kConfig[] = "config.json";

// Files that transformers read with tokenizer.json, and one that names ends of texts.
constexpr const char* kBeside[] = {kTokenizerConfig, "special_tokens_map.json", kAddedFile,
                                   "chat_template.jinja", kGenerationConfig};

// Returns null for a file that is not there.
absl::StatusOr<Json> ReadMap(const std::string& path) {
  return IsThere(path) ? ReadJsonMap(path) : absl::StatusOr<Json>(Json());
}

absl::Status NoTokenizer(const std::string& dir) {
  std::string advice;
  if (IsThere(absl::StrCat(dir, "/tokenizer.model"))) {
    advice = absl::StrCat(
        "; tokenizer.model alone is not read, transformers makes the other of it: "
        "AutoTokenizer.from_pretrained(\"",
        dir, "\").save_pretrained(\"", dir, "\")");
  } else if (IsThere(absl::StrCat(dir, "/", kVocabFile))) {
    advice = "; data.tokens: bpe reads GPT-2's vocab.json and merges.txt";
  }
  return absl::NotFoundError(absl::StrCat(dir, " has no ", kTokenizerFile,
                                          ", want one of Hugging Face's tokenizers", advice));
}

absl::Status Differs(const std::string& token, const std::string& theirs, const std::string& path,
                     const std::string& ours, const std::string& dir) {
  return absl::InvalidArgumentError(
      absl::StrCat(dir, " has two tokenizers: token ", Printed(Json(token)), " is ", theirs, " in ",
                   path, ", but ", ours, " in ", kTokenizerFile, "; want the same in both"));
}

// Ids by token, of those that the model or the list of added tokens has.
class Ids {
 public:
  explicit Ids(const TokenizerJson& tokenizer) : tokenizer_(tokenizer) {
    for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
      ids_.emplace(tokenizer.tokens[id], static_cast<int32_t>(id));
    }
  }
  std::optional<int32_t> Find(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::make_optional(found->second);
  }
  // Checks that tokens of another file, {"token": id}, have these ids.
  absl::Status Check(const Json& others, const std::string& dir, const std::string& path) const {
    for (const auto& [token, id] : others.items()) {
      const std::optional<int32_t> ours = Find(token);
      if (ours && id == *ours) continue;
      return Differs(token, Printed(id), path, ours ? absl::StrCat(*ours) : "none", dir);
    }
    return absl::OkStatus();
  }
  size_t size() const { return tokenizer_.tokens.size(); }

 private:
  const TokenizerJson& tokenizer_;
  absl::flat_hash_map<std::string_view, int32_t> ids_;
};

// Returns {"token": id} of tokenizer_config.json's {"id": {"content": "token"}}.
Json AddedByConfig(const Json& config) {
  Json ids = Json::object();
  const Json decoder = config.is_object() ? config.value("added_tokens_decoder", Json()) : Json();
  for (const auto& [id, token] : decoder.items()) {
    const Json number = Json::parse(id, nullptr, /*allow_exceptions=*/false);
    const Json content = token.is_object() ? token.value("content", Json()) : Json();
    if (content.is_string()) ids[content.get<std::string>()] = number;
  }
  return ids;
}

absl::Status CheckOthers(const std::string& dir, const Json& config, const Ids& ids) {
  RETURN_IF_ERROR(ids.Check(AddedByConfig(config), dir, kTokenizerConfig));
  for (const char* const name : {kAddedFile, kVocabFile}) {
    ASSIGN_OR_RETURN(const Json others, ReadMap(absl::StrCat(dir, "/", name)));
    if (others.is_object()) RETURN_IF_ERROR(ids.Check(others, dir, name));
  }
  return absl::OkStatus();
}

// Returns the id of tokenizer_config.json's `key`, a token or a map with its content. Nothing if
// there is none.
absl::StatusOr<std::optional<int32_t>> Named(const Json& config, const char* key, const Ids& ids) {
  Json token = config.is_object() ? config.value(key, Json()) : Json();
  if (token.is_object()) token = token.value("content", Json());
  if (!token.is_string()) return std::nullopt;
  const std::optional<int32_t> id = ids.Find(token.get<std::string>());
  if (id) return id;
  return absl::InvalidArgumentError(absl::StrCat(
      kTokenizerConfig, ": ", key, " is ", Printed(token), ", want a token of ", kTokenizerFile));
}

// Returns the ids of `eos_token_id`, a number or a list. None if it is absent. Where an end is
// `named`, numbers beyond the tokenizer are left out: configurations keep those of a larger one.
absl::StatusOr<std::vector<int32_t>> Numbered(const Json& config, const char* name, bool is_named,
                                              const Ids& ids) {
  const Json value = config.is_object() ? config.value("eos_token_id", Json()) : Json();
  std::vector<int32_t> ends;
  for (const Json& id : value.is_array() ? value : Json::array({value})) {
    if (id.is_null()) continue;
    const bool is_beyond = id.is_number_unsigned() && id.get<uint64_t>() >= ids.size();
    if (is_beyond && is_named) continue;
    if (!id.is_number_unsigned() || is_beyond) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": eos_token_id is ", Printed(value), ", want 0 to ", ids.size() - 1));
    }
    ends.push_back(id.get<int32_t>());
  }
  return ends;
}

absl::StatusOr<std::vector<int32_t>> EndsOfText(const std::string& dir, const Json& config,
                                                const Ids& ids) {
  ASSIGN_OR_RETURN(const std::optional<int32_t> named, Named(config, "eos_token", ids));
  std::vector<int32_t> ends;
  if (named) ends.push_back(*named);
  for (const char* const name : {kGenerationConfig, kConfig}) {
    ASSIGN_OR_RETURN(const Json other, ReadMap(absl::StrCat(dir, "/", name)));
    ASSIGN_OR_RETURN(const std::vector<int32_t> numbered,
                     Numbered(other, name, named.has_value(), ids));
    for (const int32_t id : numbered) {
      if (id != named) ends.push_back(id);
    }
    if (!numbered.empty()) break;
  }
  return ends;
}

absl::Status AddSpecials(const std::string& dir, const Json& config, const Ids& ids, HfFiles* to) {
  to->begin_of_text = to->tokenizer.beginning;
  const Json adds = config.is_object() ? config.value("add_bos_token", Json()) : Json();
  if (adds == false) to->begin_of_text.reset();
  if (adds == true) {
    ASSIGN_OR_RETURN(to->begin_of_text, Named(config, "bos_token", ids));
  }
  ASSIGN_OR_RETURN(to->ends_of_text, EndsOfText(dir, config, ids));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HfFiles> ReadHfFiles(const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kTokenizerFile);
  if (!IsThere(path)) return NoTokenizer(dir);
  HfFiles files;
  ASSIGN_OR_RETURN(std::string text, ReadPublished(path));
  auto tokenizer = ParseTokenizerJson(text);
  if (!tokenizer.ok()) {
    RETURN_IF_ERROR(CheckNoStandIn(path, text));
    return Annotated(tokenizer.status(), path);
  }
  files.tokenizer = *std::move(tokenizer);
  files.contents[kTokenizerFile] = std::move(text);
  for (const char* const name : kBeside) {
    const std::string beside = absl::StrCat(dir, "/", name);
    if (!IsThere(beside)) continue;
    ASSIGN_OR_RETURN(files.contents[name], ReadPublished(beside));
  }
  ASSIGN_OR_RETURN(const Json config, ReadMap(absl::StrCat(dir, "/", kTokenizerConfig)));
  const Ids ids(files.tokenizer);
  RETURN_IF_ERROR(CheckOthers(dir, config, ids));
  const absl::Status specials = AddSpecials(dir, config, ids, &files);
  if (!specials.ok()) return Annotated(specials, dir);
  return files;
}

}  // namespace thinwire
