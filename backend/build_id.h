// Names the build of a program or library, so that a stage server and its plugin can be compared.
#pragma once

namespace thinwire {

// Returns the commit, the compiler, the mode and a digest of the headers whose classes cross the
// border between a stage server and its plugin. The digest is there because a commit alone does not
// tell two states of edited sources apart.
// Example: "3f2a91c0d4e5 gcc 12.2.0 opt, interface 53b1e2f00d6ac917".
const char* BackendBuildId();

}  // namespace thinwire
