// How many processor cores this process may use.
#pragma once

#include <string>

namespace thinwire {

// The least of the machine's cores, those that the process is bound to (sched_setaffinity) and the
// whole cores of the CPU time that its control groups allow it, version 1 or 2, as containers limit
// it; at least 1. A limit that cannot be read is none.
int UsableCores();

// The whole cores of `quota` microseconds of CPU time in every `period`; 0 when nothing is limited:
// without a quota above 0 or a period above 0.
int CoresOfQuota(long long quota, long long period);

// The same from the text of a control group's cpu.max, version 2: "150000 100000", "max 100000".
int CoresOfCpuMax(const std::string& text);

// The least that the control groups of /proc/self/cgroup (`groups` is its text) allow, where the
// hierarchies are mounted below `mounted` (/sys/fs/cgroup); 0 when they limit nothing.
int CoresOfControlGroups(const std::string& groups, const std::string& mounted);

}  // namespace thinwire
