#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace thinwire {
namespace {

// Returns the text of a file; empty if it cannot be read.
std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the lesser of two numbers of cores; 0 means no limit.
int Lesser(int a, int b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

int CoresOfGroup(const std::string& folder) {
  const std::string quota = TextOf(folder + "/cpu.cfs_quota_us");  // version 1
  if (quota.empty()) return CoresOfCpuMax(TextOf(folder + "/cpu.max"));
  std::istringstream numbers(quota + " " + TextOf(folder + "/cpu.cfs_period_us"));
  long long of_quota = 0, of_period = 0;
  numbers >> of_quota >> of_period;
  return CoresOfQuota(of_quota, of_period);
}

// A group's limit also holds for the groups below it. In a container the path may be that of the
// host; of its groups the container sees only the last one, as the root.
int CoresOfHierarchy(const std::string& root, std::string path) {
  int cores = CoresOfGroup(root);
  for (; path.size() > 1; path.resize(path.rfind('/'))) {
    cores = Lesser(cores, CoresOfGroup(root + path));
  }
  return cores;
}

int BoundCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return CPU_COUNT(&set);
}

}  // namespace

int CoresOfQuota(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  constexpr long long kMost = 1 << 16;
  return static_cast<int>(std::clamp(quota / period, 1LL, kMost));
}

int CoresOfCpuMax(const std::string& text) {
  std::istringstream numbers(text);
  long long quota = 0, period = 0;
  if (!(numbers >> quota >> period)) return 0;  // "max", for example
  return CoresOfQuota(quota, period);
}

int CoresOfControlGroups(const std::string& groups, const std::string& mounted) {
  int cores = 0;
  std::istringstream lines(groups);
  // A line is "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    if (controllers.empty()) {
      cores = Lesser(cores, CoresOfHierarchy(mounted, path));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      cores = Lesser(cores, CoresOfHierarchy(mounted + "/cpu", path));
    }
  }
  return cores;
}

int UsableCores() {
  const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int allowed = CoresOfControlGroups(TextOf("/proc/self/cgroup"), "/sys/fs/cgroup");
  return std::max(1, Lesser(Lesser(online, BoundCores()), allowed));
}

}  // namespace thinwire
