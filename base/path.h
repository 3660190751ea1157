// Conversion of paths that people write to paths that mean the same in every working directory.
#pragma once

#include <string>

namespace thinwire {

// Replaces a leading "~", alone or before a slash, by the user's home folder ($HOME). Another
// user's home, "~name", is not replaced, and nothing is if $HOME is not set.
std::string WithHome(const std::string& path);

// Returns whether it begins as the name of a model in the Hugging Face hub, "hf:", and so is no
// path (base/hub_cache.h).
bool IsHubId(const std::string& path);

// Returns WithHome(path) as an absolute path; a relative path begins in the working directory. ".."
// and links stay; an empty path stays empty, and so does what IsHubId.
std::string AbsolutePath(const std::string& path);

}  // namespace thinwire
