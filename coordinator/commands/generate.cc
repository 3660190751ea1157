// `thinwire generate`: text from a language model, that of a run or of a folder.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/run/generated_text.h"
#include "coordinator/run/language_model.h"
#include "coordinator/run/stop_texts.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/session/session.h"
#include "data/dataset.h"
#include "data/unicode.h"
#include "nn/sampling.h"

namespace thinwire {
namespace {

struct GenerateFlags {
  std::string target;                  // folder of a run or a model
  std::vector<std::string> overrides;  // path=value
  std::string prompt;                  // "-": what stdin has
  std::vector<std::string> stops;      // texts that end the text
  std::string specials;                // text or ids; empty: as in training
  int64_t tokens = 200;                // most to draw
  double temperature = 1;              // these three as in nn/sampling.h
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 1;
  std::string compression = "on";  // or off
  SessionOptions session;
};

constexpr char kGenerateExamples[] =
    R"(Takes the weights that a run of a language model left in DIR/model and lets its stages draw
token after token. Stdout gets the prompt and what follows it, stderr the speed and what
crossed the cuts for each token, prompt included.

DIR@STEP takes a checkpoint's. DIR may also be a model's own folder, as Hugging Face has them:
config.json, weights and tokenizer.json, or hf:ORG/NAME for one in the local cache of the hub.
One stage on this machine then draws with no codec; --set cuts it, gives it codecs or a longer
context (data.context: at most 1024, unless set).

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

// Text on its way to stdout, as it comes. The bytes of a character wait until it is whole. A
// terminal is shown it as Printable has it.
class Output {
 public:
  absl::Status Write(std::string_view text) {
    held_.append(text);
    return Flush(WholeCharacters(held_));
  }
  // Writes what is left, and a line end.
  absl::Status End() {
    if (last_ != '\n' || !held_.empty()) held_ += '\n';
    return Flush(held_.size());
  }

 private:
  absl::Status Flush(size_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    const std::string text = held_.substr(0, bytes);
    held_.erase(0, bytes);
    last_ = text.back();
    return WriteAll(STDOUT_FILENO, "stdout", is_terminal_ ? Shown(text) : text);
  }
  // Works in parts that Printable does not shorten.
  static std::string Shown(const std::string& text) {
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const std::string_view part = std::string_view(text).substr(at, kPrintedBytes);
      const bool is_last = at + part.size() == text.size();
      shown += Printable(part.substr(0, is_last ? part.size() : WholeCharacters(part)));
      at += is_last ? part.size() : WholeCharacters(part);
    }
    return shown;
  }

  const bool is_terminal_ = isatty(STDOUT_FILENO) != 0;
  std::string held_;
  char last_ = '\n';
};

struct PreparedText {
  TextTask task;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<int32_t> ends;  // tokens that end the text
};

absl::StatusOr<Sampling> SamplingFrom(const GenerateFlags& flags) {
  const absl::Status valid = CheckSampling({flags.temperature, flags.top_k, flags.top_p});
  if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat("--", valid.message()));
  Sampling sampling;
  sampling.set_temperature(flags.temperature);
  sampling.set_top_k(static_cast<uint32_t>(flags.top_k));
  sampling.set_top_p(flags.top_p);
  sampling.set_seed(flags.seed);
  return sampling;
}

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

absl::StatusOr<std::optional<Specials>> SpecialsFrom(const std::string& name) {
  if (name.empty()) return std::nullopt;
  Specials specials{};
  RETURN_IF_ERROR(FromName(name, &specials));
  return specials;
}

absl::Status CheckStops(const std::vector<std::string>& stops) {
  if (!absl::c_linear_search(stops, "")) return absl::OkStatus();
  return absl::InvalidArgumentError("--stop: is empty, want a text");
}

absl::StatusOr<PreparedText> Prepare(GenerateFlags* flags) {
  RETURN_IF_ERROR(CheckStops(flags->stops));
  ASSIGN_OR_RETURN(Sampling sampling, SamplingFrom(*flags));
  ASSIGN_OR_RETURN(const std::optional<Specials> specials, SpecialsFrom(flags->specials));
  ASSIGN_OR_RETURN(LanguageModel model,
                   OpenLanguageModel(flags->target, flags->overrides, specials, &flags->session));
  const bool compressed = flags->compression == "on";
  RETURN_IF_ERROR(Annotated(CheckGenerates(model.experiment, compressed), flags->target));
  sampling.set_vocabulary(static_cast<uint32_t>(model.tokenizer->vocabulary()));
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, Encoded(flags->prompt, *model.tokenizer));
  std::vector<int32_t> ends = model.tokenizer->ends_of_text();
  return PreparedText{{std::move(model.experiment), std::move(model.weights), std::move(prompt),
                       flags->tokens, compressed, sampling},
                      std::move(model.tokenizer),
                      std::move(ends)};
}

absl::Status Generate(const GenerateFlags& flags, const PreparedText& prepared,
                      Interruption* interruption, TextTotals* totals) {
  ASSIGN_OR_RETURN(const auto session, Session::Start("generate", prepared.task.experiment,
                                                      flags.session, interruption));
  Output output;
  StopTexts stops(flags.stops);
  RETURN_IF_ERROR(output.Write(flags.prompt));
  const auto on_token = [&](int32_t id) -> absl::StatusOr<bool> {
    if (absl::c_linear_search(prepared.ends, id)) return false;
    ASSIGN_OR_RETURN(const std::string text, prepared.tokenizer->Continue({id}));
    RETURN_IF_ERROR(output.Write(stops.Take(text)));
    return !stops.seen();
  };
  absl::Status status = GenerateText(prepared.task, session->fleet(), on_token, totals);
  status.Update(output.Write(stops.Rest()));
  status.Update(output.End());
  return status;
}

void SaySpeed(const TextTotals& totals) {
  if (totals.tokens == 0) return;
  const auto tokens = static_cast<double>(totals.tokens);
  std::fprintf(stderr, "%lld tokens in %.2f s: %.4g tokens/s, %.4g wire bytes a token\n",
               static_cast<long long>(totals.tokens), totals.seconds, tokens / totals.seconds,
               static_cast<double>(totals.wire_bytes) / tokens);
}

int GenerateCommand(GenerateFlags flags, Interruption* interruption) {
  if (flags.prompt == "-") {
    flags.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
    flags.prompt.erase(0, ByteOrderMarkBytes(flags.prompt));
  }
  const absl::StatusOr<PreparedText> prepared = Prepare(&flags);
  if (!prepared.ok()) return Complain(prepared.status(), kExitUsage);
  TextTotals totals;
  const absl::Status status = Generate(flags, *prepared, interruption, &totals);
  SaySpeed(totals);
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
  generate
      ->add_option("DIR", flags->target,
                   "folder of a run, RUN@STEP, folder of a model, or hf:ORG/NAME")
      ->required()
      ->transform(kPath);
  generate->add_option("--prompt", flags->prompt, "what the text begins with; -: what stdin has");
  generate
      ->add_option(
          "--stop", flags->stops,
          "end before this text where it first comes, and do not print it; may stand often")
      ->allow_extra_args(false);
  generate
      ->add_option("--specials", flags->specials,
                   "what spells a special token in the prompt is text, or the token's id (default: "
                   "as in training; a folder's: text)")
      ->check(CLI::IsMember({"text", "ids"}));
  generate->add_option("--tokens", flags->tokens, "most tokens to draw")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  generate
      ->add_option("--temperature", flags->temperature,
                   "logits are divided by it; 0: always the most probable token")
      ->capture_default_str();
  generate->add_option("--top_k", flags->top_k, "draw from so many most probable tokens; 0: all")
      ->capture_default_str();
  generate
      ->add_option("--top_p", flags->top_p,
                   "draw from the fewest tokens, most probable first, with this share of the "
                   "probability; 1: all")
      ->capture_default_str();
  generate->add_option("--seed", flags->seed, "another one draws another text")
      ->capture_default_str();
  generate->add_option("--compression", flags->compression, "at cuts: as trained, or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}));
  AddOverrides(generate, &flags->overrides);
  AddStages(generate, &flags->session);
  AddLaunch(generate, &flags->session);
  return {generate,
          [flags](Interruption* interruption) { return GenerateCommand(*flags, interruption); }};
}

}  // namespace thinwire
