// Which build a program or library is, as far as a stage server and its plugin must agree.
#pragma once

namespace thinwire {

// Commit, compiler and mode, and a digest of the headers whose classes cross the border: a commit
// alone does not tell two states of edited sources apart.
// "3f2a91c0d4e5 gcc 12.2.0 opt, interface 53b1e2f00d6ac917".
const char* BackendBuildId();

}  // namespace thinwire
