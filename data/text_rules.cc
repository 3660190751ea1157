#include "data/text_rules.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;

// A pair of JSON texts, in the form that Plain gives them, and its rules.
struct Known {
  TextRules rules;
  const char* normalizer;
  const char* pre_tokenizer;
};

constexpr char kNothing[] = "null";
constexpr char kComposition[] = R"({"type": "NFC"})";
constexpr char kSpacesReplaced[] =
    R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})";
constexpr char kPrependedAndReplaced[] =
    R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";

constexpr char kGpt2Words[] =
    R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
constexpr char kDigitsAndWords[] =
    R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})";
constexpr char kThreeDigitsWords[] =
    R"json({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex":
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
      "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})json";
constexpr char kOneDigitWords[] =
    R"json({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex":
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
      "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})json";
constexpr char kCasedWords[] =
    R"json({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex":
      "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
      "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})json";
constexpr char kFirstPrefixed[] =
    R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false})";
// The normalizer leaves no space at which this could split.
constexpr char kSplitAtSpaces[] =
    R"({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
        "invert": false})";

constexpr TextRules Bytes(const char* name, WordRule words, bool composes = false) {
  return {name, Units::kBytes, composes, words, Prefix::kNone};
}
constexpr TextRules Characters(const char* name, Prefix prefix) {
  return {name, Units::kCharacters, /*composes=*/false, WordRule::kGpt2, prefix};
}

constexpr Known kKnown[] = {
    {Bytes("GPT-2", WordRule::kGpt2), kNothing, kGpt2Words},
    {Bytes("SmolLM2", WordRule::kDigitsApart), kNothing, kDigitsAndWords},
    {Bytes("Llama 3", WordRule::kThreeDigits), kNothing, kThreeDigitsWords},
    {Bytes("Qwen 2", WordRule::kOneDigit, /*composes=*/true), kComposition, kOneDigitWords},
    {Bytes("Mistral Nemo", WordRule::kCased), kNothing, kCasedWords},
    {Characters("Llama 2", Prefix::kAlways), kPrependedAndReplaced, kNothing},
    {Characters("Mistral", Prefix::kFirst), kNothing, kFirstPrefixed},
    {Characters("Gemma", Prefix::kNone), kSpacesReplaced, kSplitAtSpaces},
    {Characters("Gemma", Prefix::kNone), kSpacesReplaced, kNothing},
};

void SetDefault(const char* key, const Json& value, Json* part) {
  if (!part->contains(key)) (*part)[key] = value;
}

// Returns a part without what changes no id, with its defaults, and without a sequence around one
// part or none.
Json Plain(Json part) {
  if (!part.is_object()) return part;
  for (const char* const list : {"normalizers", "pretokenizers"}) {
    if (!part.contains(list) || !part[list].is_array()) continue;
    if (part[list].empty()) return nullptr;
    for (Json& each : part[list]) each = Plain(std::move(each));
    if (part[list].size() == 1) return part[list][0];
  }
  const Json type = part.value("type", Json());
  if (type == "ByteLevel") {
    part.erase("trim_offsets");
    SetDefault("use_regex", true, &part);
  }
  if (type == "Metaspace") {
    part.erase("str_rep");
    SetDefault("prepend_scheme", "always", &part);
    SetDefault("split", true, &part);
    // It was the name of prepend_scheme before.
    if (part.value("add_prefix_space", Json(true)) == true) part.erase("add_prefix_space");
  }
  return part;
}

std::string Shown(const Json& part) {
  return PrintableLine(part.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string KnownNames() {
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if (names.empty() || names.back() != known.rules.name) names.emplace_back(known.rules.name);
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::StatusOr<TextRules> RulesOf(const Json& normalizer, const Json& pre_tokenizer) {
  const Json plain_normalizer = Plain(normalizer), plain_pre_tokenizer = Plain(pre_tokenizer);
  for (const Known& known : kKnown) {
    if (plain_normalizer == Json::parse(known.normalizer) &&
        plain_pre_tokenizer == Json::parse(known.pre_tokenizer)) {
      return known.rules;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("normalizer ", Shown(normalizer),
                                                 " with pre_tokenizer ", Shown(pre_tokenizer),
                                                 " is not known; want those of ", KnownNames()));
}

}  // namespace thinwire
