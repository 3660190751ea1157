// `thinwire generate`: text from a language model, that of a run or of a folder.

#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/annotated.h"
#include "base/status.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/text_flags.h"
#include "coordinator/generate/reply.h"
#include "coordinator/generate/text_output.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"
#include "data/unicode.h"

namespace thinwire {
namespace {

struct GenerateFlags {
  TextFlags text;
  std::string prompt;  // "-": what stdin has
};

constexpr char kGenerateExamples[] =
    R"(Takes the weights that a run of a language model left in DIR/model and lets its stages draw
token after token. Stdout gets the prompt and what follows it, stderr the speed and what
crossed the cuts for each token, prompt included.

DIR@STEP takes a checkpoint's. DIR may also be a model's own folder, as Hugging Face has them:
config.json, weights and tokenizer.json, or hf:ORG/NAME for one in the local cache of the hub.
One stage on this machine then draws with no codec; --set cuts it, gives it codecs, an adapter
(lora.init: its folder) or a longer context (data.context: at most 1024, unless set).

The text ends at the token that ends texts, which is not printed, before a text of --stop, or
after --tokens. The vocabulary is that of DIR/model: the text may be gone. The token that
begins texts, which Llama's tokenizers have, stands in front of the prompt. An empty prompt is
that token, else <|endoftext|>, or a line's end where the run was taught no such token; it is
not printed. When the model's context is full, its later half becomes the beginning of a new
one. Equal flags and stages give equal texts. With compression on, activations cross cuts as
the experiment says, which takes codecs that code each position by itself, as those with scope
token do.

Examples:
  thinwire generate runs/shakespeare --prompt ROMEO: --tokens 300
  thinwire generate runs/shakespeare --temperature 0.8 --top_k 20 --seed 7 --stop $'\n\n'
  thinwire generate models/Qwen2.5-0.5B --prompt 'The capital of France is' --temperature 0
  thinwire generate models/SmolLM2-135M-Instruct --specials ids --prompt \
      $'<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n'
  thinwire generate runs/shakespeare --compression off --set pipeline.stages=1 <prompt.txt \
      --prompt -
  thinwire generate runs/shakespeare --stages a:4700,b:4700,c:4700,d:4700 --temperature 0
Exit codes: 0 done, 1 failed, 2 wrong usage, run or prompt, 130 interrupted.
)";

struct PreparedText {
  OpenedText opened;
  std::vector<int32_t> prompt;
};

// Encodes the prompt, behind the token that begins texts if there is one; once, where the prompt
// spells it too. An empty one becomes that token or the separator of texts. Neither is printed.
absl::StatusOr<std::vector<int32_t>> Encoded(const std::string& prompt,
                                             const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  if (tokenizer.begin_of_text()) ids.push_back(*tokenizer.begin_of_text());
  if (prompt.empty() && ids.empty() && tokenizer.end_of_text()) {
    ids.push_back(*tokenizer.end_of_text());
  }
  if (prompt.empty() && !ids.empty()) return ids;
  auto text = Annotated(tokenizer.Encode(prompt.empty() ? "\n" : prompt),
                        prompt.empty() ? "--prompt: none, and so a line's end" : "--prompt");
  if (!text.ok()) return text;
  if (!ids.empty() && !text->empty() && text->front() == ids.front()) ids.clear();
  ids.insert(ids.end(), text->begin(), text->end());
  return ids;
}

absl::StatusOr<PreparedText> Prepare(GenerateFlags* flags) {
  ASSIGN_OR_RETURN(OpenedText opened, OpenText(&flags->text));
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, Encoded(flags->prompt, *opened.model.tokenizer));
  return PreparedText{std::move(opened), std::move(prompt)};
}

absl::Status Generate(const GenerateFlags& flags, const PreparedText& prepared,
                      Interruption* interruption) {
  const LanguageModel& model = prepared.opened.model;
  ASSIGN_OR_RETURN(const auto session,
                   Session::Start("generate", model.experiment, flags.text.session, interruption));
  TextOutput output;
  RETURN_IF_ERROR(output.Write(flags.prompt));
  ASSIGN_OR_RETURN(TextWriter writer, TextWriter::Start(model.experiment, model.weights,
                                                        prepared.opened.options, session->fleet()));
  absl::Status status =
      WriteReply(prepared.prompt, *model.tokenizer, flags.text.stops, &writer,
                 [&output](std::string_view piece) { return output.Write(piece); });
  status.Update(output.End());
  SaySpeed(writer.totals());
  return status;
}

int GenerateCommand(GenerateFlags flags, Interruption* interruption) {
  if (flags.prompt == "-") {
    flags.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
    flags.prompt.erase(0, ByteOrderMarkBytes(flags.prompt));
  }
  const absl::StatusOr<PreparedText> prepared = Prepare(&flags);
  if (!prepared.ok()) return Complain(prepared.status(), kExitUsage);
  const absl::Status status = Generate(flags, *prepared, interruption);
  if (status.ok()) return kExitDone;
  if (interruption->seen()) return Complain(absl::CancelledError("interrupted"), kExitInterrupted);
  return Complain(status, kExitFailed);
}

}  // namespace

Command AddGenerate(CLI::App* app) {
  const auto flags = std::make_shared<GenerateFlags>();
  CLI::App* generate =
      app->add_subcommand("generate", "write a text with the language model of a run or a folder");
  generate->footer(kGenerateExamples);
  AddText(generate, &flags->text);
  generate->add_option("--prompt", flags->prompt, "what the text begins with; -: what stdin has");
  return {generate,
          [flags](Interruption* interruption) { return GenerateCommand(*flags, interruption); }};
}

}  // namespace thinwire
