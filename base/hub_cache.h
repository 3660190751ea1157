// Models by their names in the Hugging Face hub, in the cache that its own programs fill. Nothing
// is downloaded.
//
//   models--ORG--NAME/refs/REVISION          a commit, 40 hexadecimal digits
//   models--ORG--NAME/snapshots/COMMIT/      the files, as links to blobs/ or themselves
//
// The cache is $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else hub in $HF_HOME, else
// huggingface/hub in $XDG_CACHE_HOME or ~/.cache.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

// Returns the folder of "hf:ORG/NAME" or "hf:ORG/NAME@REVISION"; without a revision that of `main`.
// InvalidArgument for another text; NotFound says where it was looked for, and the command that
// downloads it. Other errors name the file of a revision that cannot be read or is none.
absl::StatusOr<std::string> HubFolder(const std::string& id);

// Returns HubFolder of what IsHubId, and any other path unchanged.
absl::StatusOr<std::string> HubFolderOr(const std::string& path);

// Returns "hf:ORG/NAME@COMMIT" for a folder of this machine's cache, so that other machines find it
// in theirs; any other path unchanged, one in another cache too.
std::string HubIdOr(const std::string& folder);

}  // namespace thinwire
