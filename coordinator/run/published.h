// Experiments for models that need no run: folders with config.json, tokenizer and weights, as
// Hugging Face's transformers keep them and runs leave them in RUN/model.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// Returns whether `dir` is such a folder: whether it has a config.json.
bool IsPublished(const std::string& dir);

// Returns an experiment file with the model in `dir` and a text that is read by nobody, of so many
// kinds of tokens: for stages that only generate. A sample has as many tokens as the model was made
// for, at most 1024. In one stage if `is_whole`, otherwise its cuts are open.
std::string FileToGenerate(const std::string& dir, int64_t vocabulary, bool is_whole);

// Returns an experiment file with the model in `dir` and the text in `data`: the path of a file, or
// the name of a text that is a data set. Its tokens are those of the folder, a sample is as long as
// above, and its cuts are open. NotFound if the folder has no tokens that are known.
absl::StatusOr<std::string> FileToEvaluate(const std::string& dir, const std::string& data);

// Returns NotFound for a folder that is none, nor a run's, as the error `recorded` says.
absl::Status NoModel(const absl::Status& recorded);

}  // namespace thinwire
