#include "data/chat_format.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/unicode.h"

namespace thinwire {
namespace {

constexpr Named<ChatKind> kNames[] = {
    {ChatKind::kNone, "none"},     {ChatKind::kAuto, "auto"},       {ChatKind::kChatml, "chatml"},
    {ChatKind::kLlama3, "llama3"}, {ChatKind::kMistral, "mistral"}, {ChatKind::kZephyr, "zephyr"},
    {ChatKind::kGemma, "gemma"},   {ChatKind::kOwn, "own"}};

struct Known {
  ChatKind kind;
  const char *begin, *system, *user, *assistant;
  bool trim;
};
constexpr Known kKnown[] = {
    {ChatKind::kChatml, "", "<|im_start|>system\n{}<|im_end|>\n",
     "<|im_start|>user\n{}<|im_end|>\n", "<|im_start|>assistant\n{}<|im_end|>\n", false},
    {ChatKind::kLlama3, "<|begin_of_text|>",
     "<|start_header_id|>system<|end_header_id|>\n\n{}<|eot_id|>",
     "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>",
     "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>", true},
    {ChatKind::kMistral, "<s>", "", "[INST] {} [/INST]", " {}</s>", false},
    {ChatKind::kZephyr, "", "<|system|>\n{}</s>\n", "<|user|>\n{}</s>\n", "<|assistant|>\n{}</s>\n",
     false},
    {ChatKind::kGemma, "<bos>", "", "<start_of_turn>user\n{}<end_of_turn>\n",
     "<start_of_turn>model\n{}<end_of_turn>\n", true}};

constexpr char kContent[] = "{}";
constexpr char kAssistant[] = "assistant";

// Returns the string of a role; null for an unknown one.
const std::string* StringOf(const ChatFormat& format, const std::string& role) {
  if (role == "system") return &format.system;
  if (role == "user") return &format.user;
  return role == kAssistant ? &format.assistant : nullptr;
}

absl::Status CheckRole(const char* role, const std::string& text, bool is_required) {
  const size_t at = text.find(kContent);
  const bool is_once = at != std::string::npos && text.find(kContent, at + 1) == std::string::npos;
  if (is_once || (text.empty() && !is_required)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(role, ": \"", text, "\", want ", kContent, " in it once, for the content"));
}

// Returns the text without white space at both ends.
std::string Trimmed(std::string_view text) {
  size_t begin = text.size(), end = text.size();
  for (size_t at = 0, next = 0; at < text.size(); at = next) {
    const Character character = CharacterAt(text, at);
    next = at + character.bytes;
    if (character.kind == CharacterClass::kSpace) continue;
    begin = std::min(begin, at);
    end = next;
  }
  return std::string(text.substr(begin, end - begin));
}

absl::Status AddMessage(const ChatFormat& format, const ChatMessage& message,
                        std::vector<ChatPassage>* passages) {
  const std::string* const text = StringOf(format, message.role);
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("role is ", message.role, ", want system, user or assistant"));
  }
  if (text->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("role is ", message.role, ", which format ",
                                                   Name(format.kind), " does not have"));
  }
  const size_t at = text->find(kContent);
  const bool is_answer = message.role == kAssistant;
  std::string content = format.trim ? Trimmed(message.content) : message.content;
  passages->push_back({text->substr(0, at), true, false});
  passages->push_back({std::move(content), false, is_answer});
  passages->push_back({text->substr(at + sizeof(kContent) - 1), true, is_answer});
  return absl::OkStatus();
}

// Returns the conversation without what stands behind its last message.
absl::StatusOr<std::vector<ChatPassage>> Begun(const ChatFormat& format,
                                               const std::vector<ChatMessage>& messages) {
  if (messages.empty()) return absl::InvalidArgumentError("messages is empty, want at least one");
  std::vector<ChatPassage> passages = {{format.begin, true, false}};
  if (!format.default_system.empty() && messages[0].role != "system") {
    RETURN_IF_ERROR(AddMessage(format, {"system", format.default_system}, &passages));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const absl::Status status = AddMessage(format, messages[i], &passages);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("messages[", i, "]: ", status.message()));
    }
  }
  return passages;
}

}  // namespace

NameTable<ChatKind> TableOf(ChatKind) { return {"chat", kNames}; }

ChatFormat KnownChatFormat(ChatKind kind) {
  ChatFormat format;
  format.kind = kind;
  for (const Known& known : kKnown) {
    if (known.kind != kind) continue;
    format.begin = known.begin;
    format.system = known.system;
    format.user = known.user;
    format.assistant = known.assistant;
    format.trim = known.trim;
  }
  return format;
}

absl::Status CheckChatFormat(const ChatFormat& format) {
  if (format.kind == ChatKind::kNone) return absl::OkStatus();
  const bool has_default = !format.default_system.empty();
  RETURN_IF_ERROR(CheckRole("system", format.system, has_default));
  RETURN_IF_ERROR(CheckRole("user", format.user, /*is_required=*/true));
  return CheckRole(kAssistant, format.assistant, /*is_required=*/true);
}

absl::StatusOr<std::vector<ChatPassage>> WrittenAs(const ChatFormat& format,
                                                   const std::vector<ChatMessage>& messages) {
  ASSIGN_OR_RETURN(std::vector<ChatPassage> passages, Begun(format, messages));
  passages.push_back({format.end, true, false});
  return passages;
}

absl::StatusOr<std::vector<ChatPassage>> WrittenForAnswer(
    const ChatFormat& format, const std::vector<ChatMessage>& messages) {
  ASSIGN_OR_RETURN(std::vector<ChatPassage> passages, Begun(format, messages));
  std::string front = format.assistant.substr(0, format.assistant.find(kContent));
  front.erase(front.find_last_not_of(' ') + 1);
  passages.push_back({std::move(front), true, true});
  return passages;
}

std::string EndOfAnswer(const ChatFormat& format) {
  const size_t content = format.assistant.find(kContent);
  if (content == std::string::npos) return "";
  std::string behind = format.assistant.substr(content + sizeof(kContent) - 1);
  const size_t last = behind.find_last_not_of(" \n\r\t");
  if (last != std::string::npos) behind.erase(last + 1);
  return behind;
}

}  // namespace thinwire
