// Flags of the commands with which a language model writes, and what they open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "coordinator/generate/language_model.h"
#include "coordinator/generate/text_writer.h"
#include "coordinator/session/session.h"

namespace thinwire {

struct TextFlags {
  std::string target;                  // folder of a run or a model
  std::vector<std::string> overrides;  // path=value
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

// Adds the positional DIR and a flag for each.
void AddText(CLI::App* command, TextFlags* flags);

struct OpenedText {
  LanguageModel model;
  WriterOptions options;
};

// Opens the model, and sets the session's options. Errors name the flag, or are
// OpenLanguageModel's.
absl::StatusOr<OpenedText> OpenText(TextFlags* flags);

// Says on stderr how fast a text came and what crossed the cuts; nothing if there is none.
void SaySpeed(const TextTotals& totals);

}  // namespace thinwire
