// A conversation with a language model, as the ids that the model reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/chat_format.h"
#include "data/tokenizer.h"

namespace thinwire {

// Messages, written in the format of training. Ids are those that a data set has of them.
class Conversation {
 public:
  // Begins one with a message of the system, unless it is empty, for a model that reads `context`
  // tokens, `room` of which an answer may take. `tokenizer` outlives it.
  Conversation(const Tokenizer* tokenizer, ChatFormat format, const std::string& system,
               int64_t context, int64_t room);

  // Adds what the user says. Returns the ids up to where the answer begins. If they leave less than
  // the room, the oldest messages but the system's are forgotten, in pairs. InvalidArgument, and
  // nothing is added, for a message that leaves too little by itself, that has no ids, or of a role
  // that the format lacks.
  absl::StatusOr<std::vector<int32_t>> Ask(std::string message);
  // Adds the model's answer.
  void Answer(std::string message);

  // Returns the number of messages that were forgotten.
  int64_t forgotten() const { return forgotten_; }
  const ChatFormat& format() const { return format_; }

 private:
  absl::StatusOr<std::vector<int32_t>> IdsForAnswer() const;
  absl::StatusOr<std::vector<int32_t>> Fitting();

  const Tokenizer& tokenizer_;
  const ChatFormat format_;
  const int64_t most_;  // ids in front of an answer
  std::vector<ChatMessage> messages_;
  size_t kept_ = 0;  // messages at the begin that are never forgotten
  int64_t forgotten_ = 0;
};

}  // namespace thinwire
