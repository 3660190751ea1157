// Chat templates that published models come with, of which some are known by their SHA-256.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "data/chat_format.h"

namespace thinwire {

// Returns the format that writes what the template of a model's folder does: chat_template.jinja,
// or else `chat_template` of tokenizer_config.json, of several the one called `default`. No
// template is run. NotFound for a folder without one; InvalidArgument for one that is not known.
// Both say what else there is.
absl::StatusOr<ChatFormat> FormatOfTemplate(const std::string& dir);

}  // namespace thinwire
