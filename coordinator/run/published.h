// Experiments for models that need no run: folders with config.json, tokenizer and weights, as
// Hugging Face's transformers keep them and runs leave them in RUN/model.
#pragma once

#include <cstdint>
#include <string>

namespace thinwire {

// Returns whether `dir` is such a folder: whether it has a config.json.
bool IsPublished(const std::string& dir);

// Returns an experiment file with the model in `dir` and a text that is read by nobody, of so many
// kinds of tokens: for stages that only generate. A sample has as many tokens as the model was made
// for, at most 1024. In one stage if `is_whole`, otherwise its cuts are open.
std::string FileToGenerate(const std::string& dir, int64_t vocabulary, bool is_whole);

}  // namespace thinwire
