// Which build this is, for provenance and for peers and plugins that must match.
#pragma once

#include <istream>
#include <string>

namespace thinwire {

// The sources' commit, with '+' when files differed from it; "unknown" outside a checkout.
std::string BuildCommit();

// Commit, compiler and mode: "3f2a91c0d4e5 gcc 12.2.0 opt".
std::string BuildId();

// The processor's own name, from /proc/cpuinfo; "unknown" where there is none.
std::string CpuModel();

// The same from the text of such a file.
std::string CpuModelIn(std::istream& cpuinfo);

}  // namespace thinwire
