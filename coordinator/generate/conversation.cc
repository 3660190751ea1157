#include "coordinator/generate/conversation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

Conversation::Conversation(const Tokenizer* tokenizer, ChatFormat format, const std::string& system,
                           int64_t context, int64_t room)
    : tokenizer_(*tokenizer),
      format_(std::move(format)),
      most_(std::max<int64_t>(1, context - room)) {
  if (!system.empty()) messages_.push_back({"system", system});
  kept_ = messages_.size();
}

absl::StatusOr<std::vector<int32_t>> Conversation::IdsForAnswer() const {
  ASSIGN_OR_RETURN(const std::vector<ChatPassage> written, WrittenForAnswer(format_, messages_));
  std::vector<Passage> passages;
  for (const ChatPassage& passage : written) passages.push_back({passage.text, passage.is_format});
  ASSIGN_OR_RETURN(std::vector<PassageIds> encoded, tokenizer_.EncodeEach({{passages}}));
  return std::move(encoded[0].ids);
}

absl::StatusOr<std::vector<int32_t>> Conversation::Fitting() {
  while (true) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, IdsForAnswer());
    const auto size = static_cast<int64_t>(ids.size());
    if (size <= most_) return ids;
    if (messages_.size() < kept_ + 3) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the message makes ", size, " tokens, want at most ", most_, " in front of an answer"));
    }
    const auto oldest = messages_.begin() + static_cast<std::ptrdiff_t>(kept_);
    messages_.erase(oldest, oldest + 2);
    forgotten_ += 2;
  }
}

absl::StatusOr<std::vector<int32_t>> Conversation::Ask(std::string message) {
  const std::vector<ChatMessage> before = messages_;
  const int64_t forgotten = forgotten_;
  messages_.push_back({"user", std::move(message)});
  absl::StatusOr<std::vector<int32_t>> ids = Fitting();
  if (!ids.ok()) {
    messages_ = before;
    forgotten_ = forgotten;
  }
  return ids;
}

void Conversation::Answer(std::string message) {
  messages_.push_back({"assistant", std::move(message)});
}

}  // namespace thinwire
