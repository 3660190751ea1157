#include "coordinator/commands/text_flags.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "coordinator/commands/flags.h"
#include "data/dataset.h"
#include "nn/sampling.h"

namespace thinwire {
namespace {

absl::StatusOr<Sampling> SamplingFrom(const TextFlags& flags) {
  const absl::Status valid = CheckSampling({flags.temperature, flags.top_k, flags.top_p});
  if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat("--", valid.message()));
  Sampling sampling;
  sampling.set_temperature(flags.temperature);
  sampling.set_top_k(static_cast<uint32_t>(flags.top_k));
  sampling.set_top_p(flags.top_p);
  sampling.set_seed(flags.seed);
  return sampling;
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

}  // namespace

void AddText(CLI::App* command, TextFlags* flags) {
  command
      ->add_option("DIR", flags->target,
                   "folder of a run, RUN@STEP, folder of a model, or hf:ORG/NAME")
      ->required()
      ->transform(kPath);
  command
      ->add_option(
          "--stop", flags->stops,
          "end before this text where it first comes, and do not print it; may stand often")
      ->allow_extra_args(false);
  command
      ->add_option("--specials", flags->specials,
                   "what spells a special token in a prompt is text, or the token's id (default: "
                   "as in training; a folder's: text)")
      ->check(CLI::IsMember({"text", "ids"}));
  command->add_option("--tokens", flags->tokens, "most tokens to draw")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--temperature", flags->temperature,
                   "logits are divided by it; 0: always the most probable token")
      ->capture_default_str();
  command->add_option("--top_k", flags->top_k, "draw from so many most probable tokens; 0: all")
      ->capture_default_str();
  command
      ->add_option("--top_p", flags->top_p,
                   "draw from the fewest tokens, most probable first, with this share of the "
                   "probability; 1: all")
      ->capture_default_str();
  command->add_option("--seed", flags->seed, "another one draws another text")
      ->capture_default_str();
  command->add_option("--compression", flags->compression, "at cuts: as trained, or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}));
  AddOverrides(command, &flags->overrides);
  AddStages(command, &flags->session);
  AddLaunch(command, &flags->session);
}

absl::StatusOr<OpenedText> OpenText(TextFlags* flags) {
  RETURN_IF_ERROR(CheckStops(flags->stops));
  ASSIGN_OR_RETURN(Sampling sampling, SamplingFrom(*flags));
  ASSIGN_OR_RETURN(const std::optional<Specials> specials, SpecialsFrom(flags->specials));
  ASSIGN_OR_RETURN(LanguageModel model,
                   OpenLanguageModel(flags->target, flags->overrides, specials, &flags->session));
  const bool compressed = flags->compression == "on";
  RETURN_IF_ERROR(Annotated(CheckGenerates(model.experiment, compressed), flags->target));
  sampling.set_vocabulary(static_cast<uint32_t>(model.tokenizer->vocabulary()));
  return OpenedText{std::move(model), {flags->tokens, compressed, sampling}};
}

void SaySpeed(const TextTotals& totals) {
  if (totals.tokens == 0) return;
  const auto tokens = static_cast<double>(totals.tokens);
  std::fprintf(stderr, "%lld tokens in %.2f s: %.4g tokens/s, %.4g wire bytes a token\n",
               static_cast<long long>(totals.tokens), totals.seconds, tokens / totals.seconds,
               static_cast<double>(totals.wire_bytes) / tokens);
}

}  // namespace thinwire
