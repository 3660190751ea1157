#include "coordinator/fleet/threads.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace thinwire {

std::vector<int> ThreadsPerStage(const std::string& threads, int microbatches,
                                 const std::vector<StageHost>& stages) {
  int fixed = 0;
  if (absl::SimpleAtoi(threads, &fixed)) return std::vector<int>(stages.size(), fixed);
  std::map<std::string, int> stages_on;
  for (const StageHost& stage : stages) ++stages_on[stage.host];
  std::vector<int> result;
  for (const StageHost& stage : stages) {
    const int at_once = std::min(stages_on[stage.host], microbatches);
    result.push_back(std::max(1, stage.cores / at_once));
  }
  return result;
}

std::string HostOf(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return "";
  return address.substr(0, address.rfind(':'));
}

}  // namespace thinwire
