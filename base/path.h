// Paths as people write them, as paths that mean the same wherever a program stands.
#pragma once

#include <string>

namespace thinwire {

// Puts the user's home folder ($HOME) in the place of a leading "~", alone or before a slash. The
// path of another user's home, "~name", stays as it is, and so does all where $HOME is not set.
std::string WithHome(const std::string& path);

// Makes WithHome(path) begin at the root: a relative path begins in the working directory. ".." and
// links stay; an empty path stays empty.
std::string AbsolutePath(const std::string& path);

}  // namespace thinwire
