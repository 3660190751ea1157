// A language model that is there to write: that of a run, or of a folder without one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/run/model_shares.h"
#include "coordinator/session/session.h"
#include "data/tokenizer.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct LanguageModel {
  Experiment experiment;  // resolved
  ModelShares weights;
  std::unique_ptr<Tokenizer> tokenizer;
  std::string folder;  // with the model's files, those of the tokenizer included
};

// Opens the model of the run in `target`, or of its checkpoint (run_weights.h); if there is none,
// that in the folder itself (published.h), which may go by its name in the hub
// (base/hub_cache.h). `specials` tells what spells a special token in texts;
// absent: as in training, or of a published model text. Overrides and `session` as for
// LoadForStages. NotFound for a folder with neither; errors of LoadForStages, of the tokenizer and
// of the weights.
absl::StatusOr<LanguageModel> OpenLanguageModel(const std::string& target,
                                                const std::vector<std::string>& overrides,
                                                std::optional<Specials> specials,
                                                SessionOptions* session);

}  // namespace thinwire
