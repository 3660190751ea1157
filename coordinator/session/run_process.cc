#include "coordinator/session/run_process.h"

#include <sys/wait.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "coordinator/fleet/child_process.h"

namespace thinwire {
namespace {

constexpr std::string_view kComplaint = "thinwire: ";  // beginning of Complain's message
constexpr int kLastLines = 100;

}  // namespace

std::vector<std::string> RunArguments(const std::string& experiment, const std::string& folder,
                                      const std::string& stages, const SessionOptions& session) {
  std::vector<std::string> arguments = {"/proc/self/exe", "run", experiment, "--resume", folder};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  };
  add("--stage_server", session.stage_server);
  add("--cuda_plugin", session.cuda_plugin);
  if (session.allow_other_build) arguments.emplace_back("--allow_other_build");
  if (stages.empty()) return arguments;
  add("--stages", stages);
  add("--stages_wait", absl::StrCat(session.wait_seconds));
  add("--tls_cert", session.security.tls_cert);
  add("--tls_key", session.security.tls_key);
  add("--tls_ca", session.security.tls_ca);
  add("--token_file", session.security.token_file);
  return arguments;
}

std::string WhyRunFailed(int wait_status, const std::string& log) {
  std::vector<std::string> last = LastLines(log, kLastLines);
  std::reverse(last.begin(), last.end());
  for (const std::string& line : last) {
    if (WIFEXITED(wait_status) && line.rfind(kComplaint, 0) == 0) {
      return line.substr(kComplaint.size());
    }
  }
  return HowItEnded(wait_status);
}

}  // namespace thinwire
