// How a conversation is written as one text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/enum_names.h"
#include "data/example.h"

namespace thinwire {

// Formats that are known, and kOwn, whose strings somebody else gives. kNone: conversations are
// refused. kAuto: that of a model's template (chat_template.h), before it is found.
enum class ChatKind : uint8_t { kNone, kAuto, kChatml, kLlama3, kMistral, kZephyr, kGemma, kOwn };

// Returns the names "none", "auto", "chatml", "llama3", "mistral", "zephyr", "gemma" and "own".
NameTable<ChatKind> TableOf(ChatKind);

// The strings of a format. Those of a role have "{}" where the content of a message stands; an
// empty one refuses the role.
struct ChatFormat {
  ChatKind kind = ChatKind::kNone;
  std::string begin, system, user, assistant, end;
  std::string default_system;  // a message in front of a conversation without one; empty: none
  bool trim = false;           // contents lose white space at both ends
};

// Returns a known format; of the others nothing but their kind.
ChatFormat KnownChatFormat(ChatKind kind);

// Returns InvalidArgument, naming the string, unless those of the user and the assistant are there
// and those of roles have "{}" once. Nothing is wanted of kNone.
absl::Status CheckChatFormat(const ChatFormat& format);

// A stretch of a conversation's text.
struct ChatPassage {
  std::string text;
  bool is_format = false;  // a string of the format, and nothing that somebody said
  bool is_answer = false;  // of the assistant: its content, and what the format has behind it
};

// Returns the text of a conversation. InvalidArgument names the number of a message whose role the
// format lacks, or that nobody knows, and a conversation without messages.
absl::StatusOr<std::vector<ChatPassage>> WrittenAs(const ChatFormat& format,
                                                   const std::vector<ChatMessage>& messages);

// Returns that text up to where the content of an answer to the conversation begins. Spaces in
// front of it are left to the answer, as tokens begin with them. Errors of WrittenAs.
absl::StatusOr<std::vector<ChatPassage>> WrittenForAnswer(const ChatFormat& format,
                                                          const std::vector<ChatMessage>& messages);

// Returns what the format has behind an answer, without white space at its end unless it is all.
std::string EndOfAnswer(const ChatFormat& format);

}  // namespace thinwire
