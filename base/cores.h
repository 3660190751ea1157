// Number of processor cores that this process may use.
#pragma once

#include <string>

namespace thinwire {

// Returns the least of three numbers, but at least 1: the machine's cores, those that the process
// is bound to (sched_setaffinity), and those that its control groups (version 1 or 2) allow. The
// latter are whole cores of CPU time, as containers limit it. A limit that cannot be read does not
// count.
int UsableCores();

// Returns the whole cores of `quota` microseconds of CPU time in every `period`; 0 if nothing is
// limited, that is if `quota` or `period` is not above 0.
int CoresOfQuota(long long quota, long long period);

// Does the same for the text of a control group's cpu.max, version 2: "150000 100000", "max
// 100000".
int CoresOfCpuMax(const std::string& text);

// Returns the least that the control groups in `groups`, the text of /proc/self/cgroup, allow; 0 if
// they limit nothing. The hierarchies are mounted below `mounted` (/sys/fs/cgroup).
int CoresOfControlGroups(const std::string& groups, const std::string& mounted);

}  // namespace thinwire
