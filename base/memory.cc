#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "base/resources.h"

namespace thinwire {
namespace {

// Returns the number that follows `name` at the beginning of a line, without its unit.
std::optional<uint64_t> NumberAfter(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  while (file >> word) {
    if (word == name && file >> number) return number;
    file.clear();
  }
  return std::nullopt;
}

// Returns nothing if the file does not exist or says "max".
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Returns what one group's limit leaves; cached file pages, which it can drop, count as free.
std::optional<uint64_t> LeftIn(const std::string& group) {
  const std::optional<uint64_t> most = NumberIn(group + "/memory.max");
  const std::optional<uint64_t> used = NumberIn(group + "/memory.current");
  if (!most || !used) return std::nullopt;
  const uint64_t files = NumberAfter(group + "/memory.stat", "inactive_file").value_or(0);
  const uint64_t held = *used - std::min(*used, files);
  return *most - std::min(*most, held);
}

// Returns the process's group in the single hierarchy of version 2: "/system.slice/x.service".
std::string OwnGroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "/";
}

}  // namespace

uint64_t AvailableMemoryBytes(const std::string& root) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  if (const auto kilobytes = NumberAfter(root + "/proc/meminfo", "MemAvailable:")) {
    least = *kilobytes * 1024;
  }
  for (std::filesystem::path group = OwnGroup(root);; group = group.parent_path()) {
    if (const auto left = LeftIn(root + "/sys/fs/cgroup" + group.string())) {
      least = std::min(least, *left);
    }
    if (group == group.parent_path()) return least;
  }
}

uint64_t ResidentBytes(const std::string& root) {
  std::ifstream file(root + "/proc/self/statm");
  uint64_t size = 0, resident = 0, shared = 0;  // pages
  if (!(file >> size >> resident >> shared)) return 0;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace thinwire
