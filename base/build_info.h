// Identity of this build and this machine, for provenance and for peers and plug-ins that must
// match.
#pragma once

#include <istream>
#include <string>

namespace thinwire {

// Returns the sources' commit, with '+' if files differed from it; "unknown" outside a checkout.
std::string BuildCommit();

// Returns commit, compiler and mode: "3f2a91c0d4e5 gcc 12.2.0 opt".
std::string BuildId();

// Returns the processor's name from /proc/cpuinfo; "unknown" if there is none.
std::string CpuModel();

// Does the same for the text of such a file.
std::string CpuModelIn(std::istream& cpuinfo);

}  // namespace thinwire
