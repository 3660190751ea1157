// Time that a thread works, without the time that it waits for a core which others use.
#pragma once

#include "base/steady_time.h"

namespace thinwire {

// Returns the CPU time of the calling thread in seconds.
double ThreadCpuSeconds();

// Returns for how many seconds, since it began, the calling thread has been ready to run while
// others had all its cores. A call takes half a microsecond. 0 if the kernel does not count this.
double CoreWaitSeconds();

// Starts when it is constructed; must be read on the same thread.
class Stopwatch {
 public:
  Stopwatch()
      : begin_(SteadyTime::Now()),
        core_wait_begin_(CoreWaitSeconds()),
        cpu_begin_(ThreadCpuSeconds()) {}

  // Times since the start.
  struct Reading {
    SteadyTime begin, end;
    double seconds = 0;  // from begin to end, without core_wait_seconds
    double core_wait_seconds = 0;
    double cpu_seconds = 0;  // at most `seconds`, except for the clocks' resolution
  };
  Reading Read() const;

 private:
  // In this order, so that no wait for a core from before the beginning counts.
  const SteadyTime begin_;
  const double core_wait_begin_, cpu_begin_;
};

}  // namespace thinwire
