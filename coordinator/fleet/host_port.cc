#include "coordinator/fleet/host_port.h"

#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr int kLargestPort = 65535;

bool IsHost(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    return text.find_first_not_of("0123456789abcdefABCDEF:.", 1) == text.size() - 1;
  }
  return !text.empty() && text.find_first_of(":[]/, \t") == text.npos;
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  HostPort parsed;
  if (colon != text.npos) {
    parsed.host = text.substr(0, colon);
    const std::string port = text.substr(colon + 1);
    const bool is_number = port.find_first_not_of("0123456789") == port.npos;
    if (IsHost(parsed.host) && is_number && absl::SimpleAtoi(port, &parsed.port) &&
        parsed.port <= kLargestPort) {
      return parsed;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\", want host:port with a port of at most ", kLargestPort));
}

}  // namespace thinwire
