// `thinwire chat`: a conversation with a language model, that of a run or of a folder.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/text.h"
#include "config/specs.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/text_flags.h"
#include "coordinator/generate/conversation.h"
#include "coordinator/generate/reply.h"
#include "coordinator/generate/text_output.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"
#include "data/chat_template.h"

namespace thinwire {
namespace {

struct ChatFlags {
  TextFlags text;
  std::string format;  // empty: that of the run's data
  std::string system;
};

constexpr char kChatExamples[] =
    R"(Takes the language model of a run or a folder, as thinwire generate does, and lets it answer each
line of stdin, until stdin ends (Ctrl-D). Its stages keep what they have read, so that an answer
costs the new message and its own tokens only. When the context is full, the oldest messages are
forgotten, in pairs, but for --system.

Messages are written in the format of the run's data (data.chat), or in that of the template which
the model came with, if it is a known one; otherwise --chat names it. An answer ends where the format, or a token that ends
texts, ends it, before a text of --stop, or after --tokens.

Examples:
  thinwire chat runs/chats
  thinwire chat models/SmolLM2-135M-Instruct --system 'You answer in one sentence.'
  thinwire chat hf:Qwen/Qwen2.5-0.5B-Instruct --temperature 0.7 --top_p 0.9
  thinwire chat models/TinyLlama-1.1B-Chat-v1.0 --chat zephyr
  thinwire chat runs/chats --stages a:4700,b:4700,c:4700,d:4700 <questions.txt >answers.txt
Exit codes: 0 done, 1 failed, 2 wrong usage, run or message, 130 interrupted.
)";

// Returns the names of formats whose strings are known.
std::vector<std::string> KnownFormats() {
  std::vector<std::string> names;
  for (const ChatKind kind : AllOf<ChatKind>()) {
    if (!KnownChatFormat(kind).user.empty()) names.emplace_back(Name(kind));
  }
  return names;
}

// Lines of stdin, for which a signal does not wait.
class Lines {
 public:
  explicit Lines(const Interruption& interruption) : interruption_(interruption) {}

  // Returns the next line without its end; nothing behind the last one, or after a signal.
  std::optional<std::string> Next() {
    while (true) {
      const size_t end = read_.find('\n');
      if (end != std::string::npos) return Taken(end, 1);
      if (!Read()) break;
    }
    if (read_.empty() || interruption_.seen()) return std::nullopt;
    return Taken(read_.size(), 0);
  }

 private:
  std::string Taken(size_t bytes, size_t dropped) {
    std::string line = read_.substr(0, bytes);
    read_.erase(0, bytes + dropped);
    return line;
  }
  // Reads more. Returns false at the end, after a signal, and if stdin cannot be read.
  bool Read() {
    pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {interruption_.fd(), POLLIN, 0}};
    while (poll(waits, 2, -1) < 0) {
      if (errno != EINTR) return false;
    }
    if (waits[1].revents != 0) return false;
    char bytes[4096];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (got > 0) read_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }

  const Interruption& interruption_;
  std::string read_;
};

// Returns the format that --chat names, or that of the run's data, or that of the template which
// the model came with.
absl::StatusOr<ChatFormat> FormatOf(const ChatFlags& flags, const LanguageModel& model) {
  ChatConfig config = model.experiment.data().chat();
  if (!flags.format.empty()) {
    config.Clear();
    config.set_kind(flags.format);
  } else if (!model.experiment.data().has_chat() || config.kind() == Name(ChatKind::kNone)) {
    absl::StatusOr<ChatFormat> format = FormatOfTemplate(model.folder);
    if (format.ok()) return format;
    return absl::InvalidArgumentError(
        absl::StrCat("--chat: want the name of a format, as ", flags.text.target,
                     " has none (data.chat): ", format.status().message()));
  }
  return Annotated(ChatFrom(config), "--chat");
}

// A model that answers on the terminal, or to a file.
class Chat {
 public:
  Chat(const ChatFlags& flags, const OpenedText& opened, Conversation* conversation,
       TextWriter* writer)
      : stops_(flags.text.stops), opened_(opened), conversation_(*conversation), writer_(*writer) {
    const std::string end = EndOfAnswer(conversation->format());
    if (!end.empty()) stops_.push_back(end);
  }

  // Answers lines until there are none. InvalidArgument for a message that cannot be read, unless
  // somebody sits there to write another one.
  absl::Status Run(Lines* lines) {
    const bool is_terminal = isatty(STDIN_FILENO) != 0;
    while (true) {
      if (is_terminal) std::fputs("> ", stderr);
      const std::optional<std::string> line = lines->Next();
      if (!line) return absl::OkStatus();
      if (absl::StripAsciiWhitespace(*line).empty()) continue;
      const absl::StatusOr<std::vector<int32_t>> ids = conversation_.Ask(*line);
      if (ids.ok()) {
        RETURN_IF_ERROR(Answer(*ids));
      } else if (is_terminal) {
        std::fprintf(stderr, "%s\n", PrintableLine(std::string(ids.status().message())).c_str());
      } else {
        return ids.status();
      }
    }
  }

 private:
  absl::Status Answer(const std::vector<int32_t>& ids) {
    SayForgotten();
    std::string answer;
    const auto show = [&](std::string_view piece) {
      if (answer.empty())
        piece.remove_prefix(std::min(piece.find_first_not_of(" \n"), piece.size()));
      answer.append(piece);
      return output_.Write(piece);
    };
    absl::Status status = WriteReply(ids, *opened_.model.tokenizer, stops_, &writer_, show);
    status.Update(output_.End());
    absl::StripTrailingAsciiWhitespace(&answer);
    conversation_.Answer(std::move(answer));
    return status;
  }

  void SayForgotten() {
    const int64_t forgotten = conversation_.forgotten();
    if (forgotten > told_) {
      std::fprintf(stderr, "The context is full: the first %lld messages are forgotten.\n",
                   static_cast<long long>(forgotten));
    }
    told_ = forgotten;
  }

  std::vector<std::string> stops_;
  const OpenedText& opened_;
  Conversation& conversation_;
  TextWriter& writer_;
  TextOutput output_;
  int64_t told_ = 0;
};

struct PreparedChat {
  OpenedText opened;
  std::unique_ptr<Conversation> conversation;
};

// Opens the model and begins the conversation. In front of an answer there is room for --tokens,
// but for a quarter of the context at most; a longer one goes on in a new context.
absl::StatusOr<PreparedChat> Prepare(ChatFlags* flags) {
  ASSIGN_OR_RETURN(OpenedText opened, OpenText(&flags->text));
  const Experiment& experiment = opened.model.experiment;
  ASSIGN_OR_RETURN(ChatFormat format, FormatOf(*flags, opened.model));
  if (!flags->system.empty()) {
    RETURN_IF_ERROR(
        Annotated(WrittenForAnswer(format, {{"system", flags->system}}).status(), "--system"));
  }
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  const int64_t room = std::min(flags->text.tokens, model.positions / 4);
  auto conversation = std::make_unique<Conversation>(
      opened.model.tokenizer.get(), std::move(format), flags->system, model.positions, room);
  return PreparedChat{std::move(opened), std::move(conversation)};
}

absl::Status Converse(const ChatFlags& flags, const PreparedChat& prepared,
                      Interruption* interruption) {
  const LanguageModel& model = prepared.opened.model;
  ASSIGN_OR_RETURN(const auto session,
                   Session::Start("chat", model.experiment, flags.text.session, interruption));
  ASSIGN_OR_RETURN(TextWriter writer, TextWriter::Start(model.experiment, model.weights,
                                                        prepared.opened.options, session->fleet()));
  Lines lines(*interruption);
  const absl::Status status =
      Chat(flags, prepared.opened, prepared.conversation.get(), &writer).Run(&lines);
  SaySpeed(writer.totals());
  return status;
}

int ChatCommand(ChatFlags flags, Interruption* interruption) {
  const absl::StatusOr<PreparedChat> prepared = Prepare(&flags);
  if (!prepared.ok()) return Complain(prepared.status(), kExitUsage);
  const absl::Status status = Converse(flags, *prepared, interruption);
  if (interruption->seen()) return Complain(absl::CancelledError("interrupted"), kExitInterrupted);
  if (status.ok()) return kExitDone;
  return Complain(status, absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed);
}

}  // namespace

Command AddChat(CLI::App* app) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App* chat = app->add_subcommand("chat", "talk with the language model of a run or a folder");
  chat->footer(kChatExamples);
  AddText(chat, &flags->text);
  chat->add_option(
          "--chat", flags->format,
          "format of messages (default: that of the run's data, or of the model's template)")
      ->check(CLI::IsMember(KnownFormats()));
  chat->add_option("--system", flags->system, "what the system says before anybody else");
  return {chat, [flags](Interruption* interruption) { return ChatCommand(*flags, interruption); }};
}

}  // namespace thinwire
