#include "coordinator/tune/library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "config/codec_pair.h"
#include "config/differences.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "config/yaml_message.h"
#include "coordinator/plan/state_plan.h"

namespace thinwire {
namespace {

TuneCandidate Pair(const std::string& name, const std::string& family,
                   const std::string& activations, const std::string& gradients) {
  TuneCandidate candidate;
  candidate.set_name(name);
  candidate.set_family(family);
  candidate.set_compression(
      absl::StrCat("activations: {", activations, "}\ngradients: {", gradients, "}\n"));
  return candidate;
}

// Returns a pair that rounds to whole steps and keeps the support: zeros stay zeros, and gradients
// are sent only where an activation was sent.
TuneCandidate Kept(const char* activations, const char* gradients) {
  return Pair(absl::StrCat("kept-", activations, "-", gradients), "kept",
              absl::StrCat("codec: ecsq, step: ", activations, ", rounding: nearest_nonzero"),
              absl::StrCat("codec: ecsq, step: ", gradients,
                           ", rounding: dither, support: received_nonzero"));
}

// Returns a pair that rounds to whole steps in the principal axes of the channels.
TuneCandidate Principal(const char* activations, const char* gradients) {
  return Pair(
      absl::StrCat("principal-", activations, "-", gradients), "principal",
      absl::StrCat("codec: ecsq, step: ", activations, ", rotation: principal"),
      absl::StrCat("codec: ecsq, step: ", gradients, ", rounding: dither, rotation: principal"));
}

TuneCandidate Rate(const char* bits) {
  return Pair(absl::StrCat("rate-", bits), "rate", absl::StrCat("codec: ecsq, rate: ", bits),
              absl::StrCat("codec: ecsq, rate: ", bits, ", rounding: dither"));
}

// Returns a pair of uniform quantisers. That of gradients has its levels around zero, as most
// entries are close to it.
TuneCandidate Uniform(const char* activations, const char* gradients, const char* scope) {
  const std::string end = absl::StrCat(", scope: ", scope, ", lossless: entropy");
  return Pair(absl::StrCat("uniform-", activations, "-", gradients), "uniform",
              absl::StrCat("codec: uniform, bits: ", activations, end),
              absl::StrCat("codec: uniform, bits: ", gradients, ", zero: on_grid", end));
}

std::vector<TuneCandidate> PairsOfImages() {
  return {Kept("0.15", "0.12"),
          Kept("0.3", "0.5"),
          Kept("0.45", "1.1"),
          Kept("0.6", "1.6"),
          Kept("0.8", "2.2"),
          Kept("1.25", "3.2"),
          Uniform("8", "8", "tensor"),
          Uniform("4", "8", "tensor"),
          Uniform("4", "4", "tensor"),
          Pair("topk-10-shared", "", "codec: topk, ratio: 0.1, scope: sample",
               "codec: topk, indices: shared"),
          Pair("topk-10-ef21", "", "codec: topk, ratio: 0.1, scope: sample, feedback: {kind: ef21}",
               "codec: topk, ratio: 0.1, scope: sample, feedback: {kind: ef21}"),
          Pair("fp8", "", "codec: fp8", "codec: fp8, format: e5m2"),
          Pair("low-rank-4", "", "codec: low_rank, rank: 4", "codec: low_rank, rank: 4")};
}

std::vector<TuneCandidate> PairsOfTokens() {
  return {Principal("0.1", "0.35"),
          Principal("0.18", "0.7"),
          Principal("0.25", "1"),
          Principal("0.35", "1"),
          Principal("0.5", "2"),
          Rate("8"),
          Rate("4"),
          Rate("2"),
          Uniform("8", "8", "token"),
          Uniform("8", "4", "token"),
          Uniform("4", "4", "token"),
          Pair("topk-10-shared", "", "codec: topk, ratio: 0.1, scope: token",
               "codec: topk, indices: shared"),
          Pair("fp8", "", "codec: fp8", "codec: fp8, format: e5m2"),
          Pair("low-rank-8", "", "codec: low_rank, rank: 8", "codec: low_rank, rank: 8")};
}

absl::StatusOr<std::string> DirectionText(const DirectionConfig& config, bool gradient) {
  ASSIGN_OR_RETURN(const DirectionSpec spec, DirectionFrom(config, gradient));
  const bool has_feedback = spec.feedback.kind != FeedbackKind::kNone;
  return absl::StrCat(CodecText(spec.codec), has_feedback ? " + " : "",
                      has_feedback ? spec.feedback.ToString() : "");
}

}  // namespace

std::vector<TuneCandidate> StandardPairs(bool tokens) {
  return tokens ? PairsOfTokens() : PairsOfImages();
}

absl::StatusOr<TuneCandidate> GivenPair(const std::string& text, const std::string& parameters,
                                        int number) {
  const absl::StatusOr<CodecPair> pair = ParseCodecPair(text, parameters);
  if (!pair.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--codec: ", pair.status().message()));
  }
  Experiment experiment;
  RETURN_IF_ERROR(SetCodecs(pair->activations, pair->gradients, /*cut=*/"", &experiment));
  TuneCandidate candidate;
  candidate.set_name(absl::StrCat("given-", number));
  candidate.set_compression(WriteYaml(experiment.compression()));
  return candidate;
}

std::vector<TuneCandidate> OwnPair(const Experiment& experiment) {
  const auto plain = WithCandidate(experiment, TuneCandidate());
  if (plain.ok() && Differences(experiment, *plain).empty()) return {};
  TuneCandidate own;
  own.set_name("own");
  own.set_compression(WriteYaml(experiment.compression()));
  return {own};
}

absl::StatusOr<Experiment> WithCandidate(Experiment experiment, const TuneCandidate& candidate) {
  experiment.clear_compression();
  RETURN_IF_ERROR(MergeYaml(candidate.compression().empty() ? "{}" : candidate.compression(),
                            candidate.name(), experiment.mutable_compression()));
  if (!MaySendGradients(experiment)) experiment.mutable_compression()->clear_gradients();
  if (candidate.microbatches() != 0) {
    experiment.mutable_pipeline()->set_microbatches(candidate.microbatches());
  }
  RETURN_IF_ERROR(Annotated(Resolve(&experiment), candidate.name()));
  return experiment;
}

absl::StatusOr<std::string> CodecsText(const Experiment& experiment) {
  const CompressionConfig& compression = experiment.compression();
  ASSIGN_OR_RETURN(const std::string activations, DirectionText(compression.activations(), false));
  ASSIGN_OR_RETURN(const std::string gradients, DirectionText(compression.gradients(), true));
  return activations == gradients ? activations : absl::StrCat(activations, " | ", gradients);
}

absl::Status AddCandidates(const Experiment& resolved, bool tokens, TuneReport* report) {
  std::vector<TuneCandidate> all(1);
  all[0].set_name(kNone);
  for (TuneCandidate& own : OwnPair(resolved)) all.push_back(std::move(own));
  const TuneTask& task = report->task();
  for (int i = 0; i < task.codecs_size(); ++i) {
    ASSIGN_OR_RETURN(all.emplace_back(), GivenPair(task.codecs(i), task.parameters(), i + 1));
  }
  if (task.codecs().empty()) {
    for (TuneCandidate& pair : StandardPairs(tokens)) all.push_back(std::move(pair));
  }
  for (TuneCandidate& one : all) {
    const auto experiment = WithCandidate(resolved, one);
    const absl::Status fits =
        experiment.ok() ? PlanState(*experiment).status() : experiment.status();
    if (!fits.ok() && one.name() == kNone) return fits;
    if (!fits.ok()) {
      report->add_left_out(std::string(fits.message()));
      continue;
    }
    ASSIGN_OR_RETURN(*one.mutable_codecs(), CodecsText(*experiment));
    *report->add_candidates() = one;
  }
  return absl::OkStatus();
}

}  // namespace thinwire
