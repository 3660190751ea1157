#include "stage_server/statistics.h"

#include <algorithm>

namespace thinwire {

void Histogram::Observe(double seconds) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[bound - kBounds.begin()];
  sum_ += seconds;
}

const char* Name(Activity activity) {
  switch (activity) {
    case Activity::kForward:
      return "forward";
    case Activity::kBackward:
      return "backward";
    case Activity::kSendWait:
      return "send_wait";
    case Activity::kReceiveWait:
      return "receive_wait";
    case Activity::kOptimizer:
      return "optimizer";
    case Activity::kData:
      return "data";
  }
  return "unknown";
}

double ThreadCpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace thinwire
