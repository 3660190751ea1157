#include "base/build_info.h"

#include <fstream>

#include "base/build_stamp.h"

namespace thinwire {

std::string BuildCommit() { return THINWIRE_COMMIT; }

std::string BuildId() {
#ifdef __clang__
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
#ifdef NDEBUG
  return BuildCommit() + " " + compiler + " opt";
#else
  return BuildCommit() + " " + compiler + " fastbuild";
#endif
}

std::string CpuModel() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  return CpuModelIn(cpuinfo);
}

std::string CpuModelIn(std::istream& cpuinfo) {
  constexpr size_t kSeparatorBytes = 2;  // ": "
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    return line.substr(colon + kSeparatorBytes);
  }
  return "unknown";
}

}  // namespace thinwire
