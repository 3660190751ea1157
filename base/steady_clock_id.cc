#include "base/steady_clock_id.h"

#include <unistd.h>

#include <fstream>

namespace thinwire {

std::string SteadyClockId() {
  std::string boot;
  if (!(std::ifstream("/proc/sys/kernel/random/boot_id") >> boot)) return "";
  char space[64] = "";  // stays empty if the kernel has no time namespaces
  (void)!readlink("/proc/self/ns/time", space, sizeof(space) - 1);
  return boot + " " + space;
}

}  // namespace thinwire
