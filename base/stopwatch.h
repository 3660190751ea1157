// How long a thread works on something, however many others want its machine's cores.
#pragma once

#include "base/steady_time.h"

namespace thinwire {

// CPU time of the calling thread, seconds.
double ThreadCpuSeconds();

// For how long the calling thread has been ready to run while all cores that it may have were
// others', seconds since it began. Half a microsecond to ask. 0 where the kernel does not count it.
double CoreWaitSeconds();

// Begins when it is made, and stays with that thread.
class Stopwatch {
 public:
  Stopwatch()
      : begin_(SteadyTime::Now()),
        core_wait_begin_(CoreWaitSeconds()),
        cpu_begin_(ThreadCpuSeconds()) {}

  struct Reading {
    SteadyTime begin, end;
    double seconds = 0;  // from begin to end, without those of core_wait_seconds
    double core_wait_seconds = 0;
    double cpu_seconds = 0;  // never more than `seconds`, but for the clocks' steps
  };
  Reading Read() const;

 private:
  // In this order, so that no wait for a core lies before the beginning.
  const SteadyTime begin_;
  const double core_wait_begin_, cpu_begin_;
};

}  // namespace thinwire
