// The folder of a text's vocabulary, which an experiment may name as one in the Hugging Face hub.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace thinwire {

// Returns the folder. Errors of HubFolder (base/hub_cache.h); they begin with the field's name. It
// is called where files are read, so that no cache is needed to know what an experiment says.
absl::StatusOr<std::string> VocabularyFolder(const TextOptions& text);

}  // namespace thinwire
