#include "data/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/json_files.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;

constexpr char kTemplateFile[] = "chat_template.jinja", kConfig[] = "tokenizer_config.json";
constexpr char kWaysOut[] =
    "; want data.chat with the strings of the format, or the conversations as ids: python -m "
    "thinwire.prepare --chat";

// A template, and the format that writes the same of messages from system, user and assistant.
struct KnownTemplate {
  const char* sha256;
  ChatKind kind;
  const char* default_system;
};
constexpr KnownTemplate kKnown[] = {
    // Llama 3 Instruct
    {"ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122", ChatKind::kLlama3, ""},
    // Gemma and Gemma 2
    {"ecd6ae513fe103f0eb62e8ab5bfa8d0fe45c1074fa398b089c93a7e70c15cfd6", ChatKind::kGemma, ""},
    // Qwen2.5 Instruct
    {"cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f", ChatKind::kChatml,
     "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
    // Qwen3 Instruct 2507
    {"64f85b198065d0fba2a81f37e10ed68161ce2c19a754c7100e67e0ca2ee9c326", ChatKind::kChatml, ""},
    // SmolLM2 Instruct
    {"872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788", ChatKind::kChatml,
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
};

// Returns the template in tokenizer_config.json: a text, or a list of {"name", "template"}. Empty
// if there is none.
std::string TemplateIn(const Json& config) {
  const Json value = config.value("chat_template", Json());
  if (value.is_string()) return value.get<std::string>();
  for (const Json& named : value.is_array() ? value : Json::array()) {
    if (!named.is_object() || named.value("name", Json()) != "default") continue;
    const Json text = named.value("template", Json());
    if (text.is_string()) return text.get<std::string>();
  }
  return "";
}

absl::StatusOr<std::string> ReadTemplate(const std::string& dir) {
  const std::string file = absl::StrCat(dir, "/", kTemplateFile);
  if (IsThere(file)) return ReadPublished(file);
  const std::string path = absl::StrCat(dir, "/", kConfig);
  if (!IsThere(path)) return "";
  ASSIGN_OR_RETURN(const Json config, ReadJsonMap(path));
  return TemplateIn(config);
}

}  // namespace

absl::StatusOr<ChatFormat> FormatOfTemplate(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::string text, ReadTemplate(dir));
  if (text.empty()) {
    return absl::NotFoundError(absl::StrCat(dir, " has no chat template", kWaysOut));
  }
  const std::string sha256 = Sha256(text);
  for (const KnownTemplate& known : kKnown) {
    if (sha256 != known.sha256) continue;
    ChatFormat format = KnownChatFormat(known.kind);
    format.default_system = known.default_system;
    return format;
  }
  return absl::InvalidArgumentError(absl::StrCat("the chat template of ", dir, " has SHA-256 ",
                                                 sha256, ", which is not known", kWaysOut));
}

}  // namespace thinwire
