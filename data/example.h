// An example to train on, as a line of a JSONL file has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// One message of a conversation.
struct ChatMessage {
  std::string role, content;
};

// One of: a text; what stands in front of an answer, and the answer; a conversation.
struct Example {
  std::optional<std::string> text, prompt, completion;
  std::optional<std::vector<ChatMessage>> messages;
};

// Keys of a line that have an example's parts.
struct ExampleKeys {
  std::string text = "text", prompt = "prompt", completion = "completion", messages = "messages";

  friend bool operator==(const ExampleKeys& a, const ExampleKeys& b) {
    return a.text == b.text && a.prompt == b.prompt && a.completion == b.completion &&
           a.messages == b.messages;
  }
};

// Returns InvalidArgument, naming the parts, where a key is empty or two parts have the same.
absl::Status CheckExampleKeys(const ExampleKeys& keys);

// Parses a JSON object: {"text": "…"}, {"prompt": "…", "completion": "…"} or {"messages": [{"role":
// "…", "content": "…"}]}, under the names of `keys`. Other keys do not count; of a repeated one the
// last counts. InvalidArgument says at which byte it is no JSON, or what is missing or of another
// type. Takes no more memory than a few times the line's.
absl::StatusOr<Example> ParseExample(std::string_view line, const ExampleKeys& keys = {});

}  // namespace thinwire
