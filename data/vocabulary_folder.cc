#include "data/vocabulary_folder.h"

#include "base/annotated.h"
#include "base/hub_cache.h"

namespace thinwire {

absl::StatusOr<std::string> VocabularyFolder(const TextOptions& text) {
  return Annotated(HubFolderOr(text.vocabulary), "data.vocabulary");
}

}  // namespace thinwire
