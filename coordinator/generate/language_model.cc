#include "coordinator/generate/language_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hub_cache.h"
#include "base/status.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/checkpoint/base.h"
#include "coordinator/data/token_files.h"
#include "coordinator/files/record.h"
#include "coordinator/run/published.h"
#include "coordinator/run/run_weights.h"
#include "data/dataset.h"
#include "data/hf_files.h"
#include "data/hf_tokenizer.h"
#include "data/vocabulary_files.h"

namespace thinwire {
namespace {

// Returns the tokenizer that a run's model was trained with or, for a run that did not keep it, the
// one of its data.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOfRun(const std::string& model,
                                                          const DataConfig& data,
                                                          std::optional<Specials> specials) {
  if (specials && data.tokens() == Name(TokenKind::kHf)) return HfTokenizer::Load(model, *specials);
  if (specials) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--specials: ", Name(*specials), ", want a run with data.tokens: hf, not ", data.tokens()));
  }
  auto kept = OpenVocabulary(model);
  if (!absl::IsNotFound(kept.status())) return kept;
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(data));
  return LoadTokenizer(options);
}

absl::StatusOr<LanguageModel> OpenRun(const RunWeights& left,
                                      const std::vector<std::string>& overrides,
                                      std::optional<Specials> specials, SessionOptions* session) {
  ASSIGN_OR_RETURN(const Experiment trained, ParseResolved(left.text, left.path));
  ASSIGN_OR_RETURN(Experiment experiment,
                   ParseForStages(left.text, left.path, overrides, session, &trained));
  experiment.clear_init_at();  // weights come from here
  ASSIGN_OR_RETURN(ModelFolder folder, OpenWeights(left.model));
  ASSIGN_OR_RETURN(ModelShares weights, ModelShares::Of(experiment, std::move(folder)));
  ASSIGN_OR_RETURN(auto tokenizer, TokenizerOfRun(left.model, experiment.data(), specials));
  return LanguageModel{std::move(experiment), std::move(weights), std::move(tokenizer), left.model};
}

// Returns the weights in a model's folder, with those of an adapter if the overrides name one.
absl::StatusOr<ModelShares> WeightsIn(const std::string& dir, const Experiment& experiment) {
  if (experiment.lora().has_init()) return ModelShares::Initial(experiment);
  ASSIGN_OR_RETURN(ModelFolder folder, OpenWeights(dir));
  return ModelShares::Of(experiment, std::move(folder));
}

absl::StatusOr<LanguageModel> OpenPublished(const std::string& dir,
                                            const std::vector<std::string>& overrides,
                                            std::optional<Specials> specials,
                                            SessionOptions* session) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (specials) {
    ASSIGN_OR_RETURN(tokenizer, HfTokenizer::Load(dir, *specials));
  } else {
    ASSIGN_OR_RETURN(tokenizer, OpenTokenizer(dir, Specials::kText));
  }
  const std::string file =
      FileToGenerate(dir, tokenizer->vocabulary(), /*is_whole=*/session->stages.empty());
  ASSIGN_OR_RETURN(Experiment experiment, ParseForStages(file, dir, overrides, session));
  ASSIGN_OR_RETURN(ModelShares weights, WeightsIn(dir, experiment));
  return LanguageModel{std::move(experiment), std::move(weights), std::move(tokenizer), dir};
}

}  // namespace

absl::StatusOr<LanguageModel> OpenLanguageModel(const std::string& target,
                                                const std::vector<std::string>& overrides,
                                                std::optional<Specials> specials,
                                                SessionOptions* session) {
  const RunAt at = ParseRunAt(target);
  const absl::Status recorded = CheckRecorded(at.run);
  if (recorded.ok()) {
    ASSIGN_OR_RETURN(const RunWeights left, WeightsOf(at));
    return OpenRun(left, overrides, specials, session);
  }
  ASSIGN_OR_RETURN(const std::string dir, HubFolderOr(target));
  if (IsPublished(dir)) return OpenPublished(dir, overrides, specials, session);
  return NoModel(recorded);
}

}  // namespace thinwire
