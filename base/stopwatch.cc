#include "base/stopwatch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace thinwire {
namespace {

// The kernel's statistics of the thread that opens the file: "CPU_TIME CORE_WAIT TIMES" in
// nanoseconds (Linux, Documentation/scheduler/sched-stats.rst).
class SchedulerStatistics {
 public:
  SchedulerStatistics() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~SchedulerStatistics() {
    if (file_ >= 0) close(file_);
  }

  double CoreWaitSeconds() const {
    char text[80];
    const ssize_t bytes = file_ < 0 ? 0 : pread(file_, text, sizeof(text) - 1, 0);
    text[std::max<ssize_t>(bytes, 0)] = 0;
    char* behind_cpu_time = text;
    (void)std::strtoull(text, &behind_cpu_time, 10);
    return 1e-9 * static_cast<double>(std::strtoull(behind_cpu_time, nullptr, 10));
  }

 private:
  const int file_;  // negative if the kernel has none
};

}  // namespace

double ThreadCpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double CoreWaitSeconds() {
  static thread_local const SchedulerStatistics statistics;
  return statistics.CoreWaitSeconds();
}

Stopwatch::Reading Stopwatch::Read() const {
  Reading reading;
  reading.cpu_seconds = ThreadCpuSeconds() - cpu_begin_;
  reading.core_wait_seconds = CoreWaitSeconds() - core_wait_begin_;
  reading.begin = begin_;
  reading.end = SteadyTime::Now();
  reading.seconds = absl::ToDoubleSeconds(reading.end - begin_) - reading.core_wait_seconds;
  return reading;
}

}  // namespace thinwire
